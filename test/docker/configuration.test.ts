/** Compares configuration, author and history of `bough build --docker` with `docker image inspect` and `history`. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import type { HistoryLine } from "../../src/image/history.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { dockerVersions } from "../support/docker.ts";
import { openAnsweringEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";
import { asItIs, digestOfImage, keepResults } from "../support/kept-results.ts";
import { makeBases } from "./bases.ts";
import { dockerOnDemand } from "./docker-on-demand.ts";

const directory = temporaryDirectory("bough-configuration-");
const home = join(directory, "home");
let bases: Record<string, string>;
let baseDigests: string[];
const docker = dockerOnDemand(join(directory, "docker"), () => bases);
const kept = keepResults({ test: import.meta.path, versions: dockerVersions });

beforeAll(async () => {
  bases = await makeBases(directory);
  baseDigests = Object.values(bases).map(digestOfImage);
  for (const [name, source] of Object.entries(bases))
    await bough(directory, "images", "import", source, "--tag", name);
}, 120_000);

afterAll(async () => {
  await docker.close();
  rmSync(directory, { recursive: true, force: true });
}, 180_000);

const dockerfiles: readonly string[] = [
  "FROM busybox:1",
  "FROM scratch",
  "FROM configured:1",
  "FROM configured:1\nENV GIVEN=other NEW=1",
  "FROM configured:1\nENV PATH=/more:$PATH",
  "FROM busybox:1\nENV A=1\nRUN true\nENV B=$A A=2",
  "FROM busybox:1\nENV B=b 1=one A=a",
  "FROM busybox:1\nARG A=1 C\nARG B=$A\nENV V=v$B N=q\nARG r=3\nENV W=$N$r\nRUN true",
  "FROM busybox:1\nHEALTHCHECK CMD a\nHEALTHCHECK --interval=100us --retries=x None",
  "FROM busybox:1\nARG X=1\nENV Y=$X\nRUN true",
  "FROM busybox:1\nENV X=env\nARG X=arg\nRUN true",
  "FROM busybox:1\nWORKDIR /a\nWORKDIR b",
  "FROM configured:1\nWORKDIR sub",
  "FROM busybox:1\nUSER daemon:daemon",
  "FROM configured:1\nUSER 5:6\nRUN true",
  'FROM busybox:1\nCMD ["a", "b"]',
  "FROM busybox:1\nCMD echo $HOME",
  "FROM busybox:1\nENTRYPOINT top",
  'FROM busybox:1\nCMD ["x"]\nENTRYPOINT ["y"]',
  'FROM busybox:1 AS a\nCMD ["x"]\nFROM a\nENTRYPOINT ["y"]',
  'FROM busybox:1\nSHELL ["/bin/ash", "-c"]\nCMD ls\nENTRYPOINT ls',
  'FROM busybox:1\nLABEL a=1 b="two words"\nLABEL a=3 "c d"=$PATH',
  "FROM busybox:1\nEXPOSE 80 53/udp 8000-8002 90/\nEXPOSE 80",
  'FROM busybox:1\nVOLUME /data\nVOLUME ["/x y", "/z"]',
  "FROM busybox:1\nSTOPSIGNAL SIGQUIT",
  "FROM busybox:1\nHEALTHCHECK --interval=5s --timeout=1m --retries=2 CMD true",
  'FROM busybox:1\nHEALTHCHECK CMD ["a"]\nHEALTHCHECK NONE',
  "FROM busybox:1\nONBUILD RUN true\nONBUILD COPY . /x",
  "FROM onbuild:1",
  "FROM busybox:1\nENV A=1\nCOPY f /",
  "FROM --platform= busybox:1\nCOPY --from= f /",
  "FROM scratch\nCOPY f /\nENV A=1\nUSER 7",
  "FROM busybox:1 AS a\nENV A=1\nWORKDIR /w\nUSER 3\nLABEL l=1\nFROM busybox:1\nCOPY --from=a /bin/sh /x",
  "FROM busybox:1 AS a\nENV A=1\nWORKDIR /w\nLABEL l=1\nFROM a\nENV B=$A\nWORKDIR v\nLABEL m=2",
  "FROM configured:1\nMAINTAINER Jane  Doe <$X>",
  'FROM busybox:1\nARG X=1\nARG Y\nARG Z="a b" W=$X\nRUN true\nENV X=2\nRUN ["true", "a b"]',
  "FROM busybox:1\nENV X=1\nARG X=2\nRUN   true \\\n # no more\n  && echo   x\nARG Y=$X",
  "FROM busybox:1\nWORKDIR /\nWORKDIR /a\nWORKDIR /a\nENV D=e\nWORKDIR $D\nUSER ${D:+3}",
  'FROM busybox:1\nARG N=f\nCOPY --chown=1:2 $N /x/\nCOPY ["f", "/q r/"]\nADD f /y\nRUN true\nCOPY f /z',
  "FROM busybox:1 AS a\nMAINTAINER a\nCOPY f /\nFROM a\nMAINTAINER b\nRUN true\nCOPY --from=a /f /g",
  'FROM busybox:1\nCMD []\nENTRYPOINT ["a\\\\\\"b", "\\t\\u0001é"]\nSHELL ["/bin/sh", "-ec"]\nRUN true',
  'FROM busybox:1\nHEALTHCHECK --interval=90s --start-period=250ms --timeout=1h2m1.5s --retries=10 CMD ["a", "b"]',
  "FROM configured:1\nUSER $NONE\nWORKDIR $NONE\nEXPOSE $NONE\nRUN pwd && id -u",
  'FROM busybox:1\nARG NONE\nWORKDIR "$NONE"\nRUN pwd',
  "FROM busybox:1 AS a\nWORKDIR /a//b/\nRUN pwd\nFROM a\nRUN pwd",
  "FROM busybox:1\nWORKDIR /a/\nWORKDIR b/\nCOPY f .",
  "FROM busybox:1\nENV P=90\nEXPOSE $P 10/udp\nVOLUME /$P /b\nSTOPSIGNAL 9\nLABEL $P=1 x=\nENV a b  c",
  "FROM busybox:1 AS a\nWORKDIR /w\nFROM a\nWORKDIR /",
  "FROM busybox:1\nWORKDIR /w\nWORKDIR ..",
  "FROM scratch\nWORKDIR /w\nCOPY f .",
  "FROM busybox:1\nCOPY f /a/\nCOPY f2 /a/\nCOPY f /b",
  "FROM busybox:1\nWORKDIR /a\nCOPY f .\nWORKDIR /a\nENV A=1\nCOPY f2 .\nRUN true",
  "FROM busybox:1 AS a\nCOPY f /f\nCOPY f /f2\nFROM busybox:1\nCOPY f /f\nCOPY --from=a /f /f2 /g/",
  "FROM busybox:1\nWORKDIR /bin\nWORKDIR /\nADD f /bin/\nUSER daemon\nWORKDIR /own\nCOPY f .",
  "FROM scratch\nADD f f2 /z/\nARG Q\nENV W=$Q\nONBUILD COPY . /x\nMAINTAINER x",
];

test.each(dockerfiles)(
  "%j",
  async (dockerfile) => {
    const context = contextOf(dockerfile);
    const image = await build(context, "--docker");
    const { config, author = "", history, layers } = await inspect(image);
    await checkWithDocker(dockerfile, ({ Author, Config, lines }) => {
      expect({ config, author }).toEqual({ config: Config, author: Author });
      expect(history.map(asOlder).map(compared)).toEqual(lines.map(compared));
    });
    expect(history.filter(({ empty_layer }) => empty_layer !== true)).toHaveLength(layers);
    // The second build finds the same image.
    expect(await build(context, "--docker")).toBe(image);
  },
  180_000,
);

const chain = [
  'ENV A=1\nWORKDIR /w\nUSER daemon\nLABEL l=1\nCMD ["c"]\nRUN true',
  "ENV B=$A\nWORKDIR v\nLABEL m=2\nRUN id",
];

test("a build inherits the configuration of an image that another build made", async () => {
  const [first = "", second = ""] = chain;
  await build(contextOf(`FROM busybox:1\n${first}`), "--docker", "--tag", "own:1");
  const image = await build(contextOf(`FROM own:1\n${second}`), "--docker");
  const { config, history } = await inspect(image);
  await checkWithDocker(`FROM busybox:1 AS own\n${first}\nFROM own\n${second}`, ({ Config, lines }) => {
    expect(config).toEqual(Config);
    expect(history.map((line) => asOlder(line).created_by)).toEqual(
      lines.map(({ created_by }) => created_by),
    );
  });
});

// Debian's Docker (20.10) has no here-documents: the text is what Docker 28 keeps.
test("a trigger is kept with its here-documents, and runs with them", async () => {
  const trigger = "RUN <<EOF cat > /a && cat > /b <<-'END'\n$HOME\nEOF\n\tb $X\n\tEND";
  const first = await build(
    contextOf(`FROM busybox:1\nONBUILD ${trigger}`),
    "--docker",
    "--tag",
    "trigger:1",
  );
  expect((await inspect(first)).config.OnBuild).toEqual([trigger.replaceAll("\t", "")]);
  const image = await build(contextOf("FROM trigger:1"), "--docker");
  expect(await bough(directory, "cat", `${image}:/b`)).toBe("b $X");
});

test.each([
  ["a stage with LABELs", "FROM busybox:1\nLABEL a=1 b=2\nFROM busybox:1\nLABEL a=3 d=4\nRUN true"],
  ["a base with triggers", "FROM onbuild:1"],
  ["an image with only files", "FROM scratch\nCOPY f /"],
])("--label overrides labels of the Dockerfile: %s", async (_, dockerfile) => {
  const options = ["--label", "a=given", "--label", "e", "--label", "f=g=h", "--label", "a=last $X"];
  const context = contextOf(dockerfile);
  const image = await build(context, "--docker", ...options);
  const { config, history } = await inspect(image);
  const check = ({ Config, lines }: DockerImage) => {
    expect(config.Labels).toMatchObject({ a: "last $X", e: "", f: "g=h" });
    expect(config).toEqual(Config);
    expect(history.map((line) => asOlder(line).created_by)).toEqual(
      lines.map(({ created_by }) => created_by),
    );
  };
  await checkWithDocker(dockerfile, check, options);
  expect(await build(context, "--docker", ...options)).toBe(image);
  expect(await build(context, "--docker")).not.toBe(image);
});

/** Each line as Docker 28.5 writes it, with `--build-arg B=2 --build-arg C=given --build-arg GN=gn`. */
const newerLines: [instruction: string, createdBy: string][] = [
  ["ARG A=1", "ARG A=1"],
  ["ARG B", "ARG B=2"],
  ["ARG C=def", "ARG C=given"],
  ["ARG GL", "ARG GL=glob"],
  ["ARG GN", "ARG GN=gn"],
  ["ARG U", "ARG U"],
  ['ARG P=1 Q R="x y"', "ARG P=1 Q R=x y"],
  ["EXPOSE 80 443/udp 8000-8002", "EXPOSE [443/udp 80/tcp 8000/tcp 8001/tcp 8002/tcp]"],
  ["EXPOSE $A 53/UDP 9-10/tcp", "EXPOSE [1/tcp 53/udp 9/tcp 10/tcp]"],
  ["EXPOSE 80 80/tcp 79-81 80/udp", "EXPOSE [79/tcp 80/tcp 81/tcp 80/tcp 80/tcp 80/udp]"],
  ["COPY --chown=1:2 f /x1", "COPY --chown=1:2 f /x1 # buildkit"],
  ["COPY --chmod=755 --chown=1 f f2 /dst/", "COPY --chown=1 --chmod=755 f f2 /dst/ # buildkit"],
  ["COPY --chown=${A}:$B f /xv", "COPY --chown=1:2 f /xv # buildkit"],
  ["COPY --chmod=u+x f /xs", "COPY --chmod=u+x f /xs # buildkit"],
  ["COPY --link f /linked", "COPY f /linked # buildkit"],
  ["ADD --chown=root:root --chmod=0644 f /xr", "ADD --chown=root:root --chmod=0644 f /xr # buildkit"],
  ["COPY <<EOF /here\ntext\nEOF", "COPY <<EOF /here # buildkit"],
  [
    "HEALTHCHECK --interval=5s --retries=2 CMD echo h",
    `HEALTHCHECK &{["CMD-SHELL" "echo h"] "5s" "0s" "0s" "0s" '\\x02'}`,
  ],
  [
    'HEALTHCHECK --timeout=1m --start-period=2s --start-interval=1s CMD ["echo", "h"]',
    `HEALTHCHECK &{["CMD" "echo" "h"] "0s" "1m0s" "2s" "1s" '\\x00'}`,
  ],
  ['CMD ["a\u200bb", "c\u00e9"]', 'CMD ["a\\u200bb" "c\u00e9"]'],
  ["HEALTHCHECK NONE", `HEALTHCHECK &{["NONE"] "0s" "0s" "0s" "0s" '\\x00'}`],
];

test("the history has an instruction's flags, values and ports as Docker 28 writes them", async () => {
  const text = ["ARG GL=glob GN", "FROM busybox:1", ...newerLines.map(([instruction]) => instruction)].join(
    "\n",
  );
  const given = ["B=2", "C=given", "GN=gn"].flatMap((value) => ["--build-arg", value]);
  const { history } = await inspect(await build(contextOf(text), "--docker", ...given));
  expect(history.slice(1).map(({ created_by = "" }) => created_by)).toEqual(
    newerLines.map(([, line]) => line),
  );
});

// As Docker 28 writes it; Debian's (20.10) leaves out the values that come from before the first FROM.
test("the history has the values that a stage's ARG takes from before the first FROM", async () => {
  const image = await build(
    contextOf("ARG G=1 H\nFROM busybox:1\nARG G H TARGETOS\nARG G=2\nRUN true"),
    "--docker",
  );
  const { history } = await inspect(image);
  expect(history.slice(-3).map(({ created_by }) => created_by)).toEqual([
    "ARG G=1 H TARGETOS=linux",
    "ARG G=2",
    "RUN |3 G=2 H= TARGETOS=linux /bin/sh -c true # buildkit",
  ]);
});

test("without --docker, an image keeps ENV, WORKDIR, USER and the configuration of its base", async () => {
  const text = "FROM configured:1\nARG S=1\nENV A=$S\nWORKDIR /w\nUSER 5\nCMD x\nLABEL a=b";
  const image = await build(contextOf(text), "--no-docker");
  const { config, history } = await inspect(image);
  expect(history.slice(1).map(({ created_by }) => created_by)).toEqual([
    "ARG S=1",
    "ENV A=1",
    "WORKDIR /w",
    "USER 5",
  ]);
  expect(config).toEqual({
    Env: ["PATH=/opt/bin:/bin", "GIVEN=by the image", "A=1"],
    User: "5",
    WorkingDir: "/w",
    Cmd: ["sh"],
  });
});

test("another LABEL makes another image with the same layers", async () => {
  const context = contextOf("FROM busybox:1\nRUN date +%N > /d\nLABEL l=a");
  const first = await build(context, "--docker");
  writeFiles(context, { Dockerfile: "FROM busybox:1\nRUN date +%N > /d\nLABEL l=b\n" });
  const second = await build(context, "--docker");
  expect((await inspect(first)).config.Labels).toEqual({ l: "a" });
  expect((await inspect(second)).config.Labels).toEqual({ l: "b" });
  const [one, other] = [
    await bough(context, "cat", `${first}:/d`),
    await bough(context, "cat", `${second}:/d`),
  ];
  expect(other).toBe(one);
});

/** Returns what is compared of a line: also whether it has a layer. Of a RUN that changes nothing, Docker keeps its own mount points. */
function compared({ created_by = "", comment = "", empty_layer = false }: HistoryLine): object {
  return { created_by, comment, ...(!created_by.startsWith("RUN") && { empty_layer }) };
}

/** Returns a line as Docker 20.10 writes it, which the suite compares with. bough writes what Docker 28 does. */
function asOlder(line: HistoryLine): HistoryLine {
  const { created_by: text = "" } = line;
  const ports = /^EXPOSE \[(.*)\]$/.exec(text)?.[1];
  const sorted = [...new Set(ports?.split(" "))].filter((port) => port !== "").sort();
  return {
    ...line,
    created_by:
      ports === undefined
        ? text
            .replace(/^(COPY|ADD)( --ch(?:own|mod)=\S+)+/, "$1")
            // It knows no start interval.
            .replace(/^(HEALTHCHECK .*) "0s" ('.*'\})$/s, "$1 $2")
        : `EXPOSE map[${sorted.map((port) => `${port}:{}`).join(" ")}]`,
  };
}

/** Checks the image that Docker builds from a Dockerfile. */
async function checkWithDocker(
  dockerfile: string,
  check: (image: DockerImage) => void,
  options: readonly string[] = [],
): Promise<void> {
  const make = async (): Promise<DockerImage> => {
    const context = contextOf(dockerfile);
    const daemon = await docker.get();
    const image = await daemon.build({ context, dockerfile: join(context, "Dockerfile"), options });
    const { Author, Config } = await daemon.inspect(image);
    const lines = (await daemon.history(image)).map(({ created: _, ...line }) => line);
    return { Author, Config: comparable(Config), lines };
  };
  const origin = { inputs: [dockerfile, ...options], bases: baseDigests };
  await kept.check(origin, asItIs<DockerImage>(), make, check);
}

interface DockerImage {
  Author: string;
  Config: Record<string, unknown>;
  lines: HistoryLine[];
}

function contextOf(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `${dockerfile}\n`, f: "f\n", f2: "" });
  return context;
}

async function bough(workingDirectory: string, ...words: string[]): Promise<string> {
  const options = { workingDirectory, environment: { BOUGH_HOME: home } };
  const { exitCode, stdout, stderr } = await runBough(["--local", ...words], options);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

const build = (context: string, ...options: string[]) => bough(context, "build", "-q", ".", ...options);

async function inspect(image: string) {
  const environment = { PATH: process.env.PATH };
  const engine = await openAnsweringEngine({
    directory: join(home, "engine"),
    clock: systemClock,
    environment,
  });
  try {
    const answer = await engine.fetch(new Request(`http://engine/v1/images?uuid=${image}`));
    const { images } = (await answer.json()) as { images: ImageRecord[] };
    const listed = await engine.fetch(new Request(`http://engine/v1/images/${image}/layers`));
    const { layers } = (await listed.json()) as { layers: unknown[] };
    const { oci_config = {}, oci_author: author, oci_history: history = [] } = images[0] ?? {};
    return { config: comparable(oci_config), author, history, layers: layers.length };
  } finally {
    await engine.close();
  }
}

const comparedFields = [
  "User",
  "Env",
  "Cmd",
  "Entrypoint",
  "WorkingDir",
  "Labels",
  "ExposedPorts",
  "Volumes",
  "OnBuild",
];
const comparedToo = ["StopSignal", "Shell", "Healthcheck"];

/** Returns the compared fields without empty values, which Docker shows as null or empty. */
function comparable(config: object): Record<string, unknown> {
  const isSet = ([name, value]: [string, unknown]) =>
    [...comparedFields, ...comparedToo].includes(name) &&
    !["", null, undefined].some((nothing) => value === nothing) &&
    !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(config).filter(isSet));
}
