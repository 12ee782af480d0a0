/** `bough build --sbom generator=IMAGE`: a scanner image, called as BuildKit calls it. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { startServer } from "../support/server.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const home = temporaryDirectory();

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: places, environment: { BOUGH_HOME: home } });

/** Says in a package's name what it sees. */
const scan = `#!/bin/sh -eu
name=$(basename "$BUILDKIT_SCAN_SOURCE")
if touch "$BUILDKIT_SCAN_SOURCE/written" 2> /dev/null; then exit 3; fi
: > /tmp/scratch
write() {
  cat > "$BUILDKIT_SCAN_DESTINATION/$1" <<STATEMENT
{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": "$2", "predicate": {"name": "$3"}}
STATEMENT
}
write "$name.spdx.json" https://spdx.dev/Document "$(cat "$BUILDKIT_SCAN_SOURCE/found.txt") in $PWD, $\{BUILDKIT_SCAN_DEPTH:-no} depth, $OWN"
write other.spdx.json https://spdx.dev/Document other
[ -z "\${BUILDKIT_SCAN_SOURCE_EXTRAS:-}" ] || for extra in "$BUILDKIT_SCAN_SOURCE_EXTRAS"/*; do
  if touch "$extra/written" 2> /dev/null; then exit 4; fi
  write "$(basename "$extra").spdx.json" https://spdx.dev/Document "$(basename "$extra"): $(cd "$extra"; echo $(find . -type f -name "*.txt" | sort))"
done
echo scanned > "$BUILDKIT_SCAN_DESTINATION/log.txt"
`;

/** Dockerfiles of scanners. */
const scanners = {
  "scanner:1": 'COPY --chmod=755 scan /usr/bin/scan\nWORKDIR /work\nENV OWN=own\nENTRYPOINT ["scan"]\n',
  "silent:1": 'CMD ["true"]\n',
  "failing:1": 'CMD ["sh", "-c", "echo no database >&2; exit 7"]\n',
  "bare:1":
    'CMD ["sh", "-c", "echo \'{\\"spdxVersion\\": \\"SPDX-2.3\\"}\' > $BUILDKIT_SCAN_DESTINATION/sbom.spdx.json"]\n',
  "vex:1":
    'CMD ["sh", "-c", "echo \'{\\"_type\\": \\"https://in-toto.io/Statement/v1\\", \\"predicateType\\": \\"https://openvex.dev/ns\\", \\"predicate\\": {}}\' > $BUILDKIT_SCAN_DESTINATION/sbom.spdx.json"]\n',
  "none:1": "CMD []\n",
};

beforeAll(async () => {
  const base = await makeBusyboxLayout(join(places, "base"));
  await bough("images", "import", base, "--tag", "base:1");
  for (const [tag, dockerfile] of Object.entries(scanners)) {
    writeFiles(join(places, "scanner"), { Dockerfile: `FROM base:1\n${dockerfile}`, scan });
    const { exitCode, stderr } = await bough("build", "scanner", "--docker", "--tag", tag);
    if (exitCode !== 0) throw new Error(stderr);
  }
  writeFiles(join(places, "context"), {
    Dockerfile: "FROM base:1\nCOPY found.txt /\n",
    "found.txt": "a package",
  });
});

function statementsIn(layout: string) {
  const blobs = join(places, layout, "blobs/sha256");
  return readdirSync(blobs)
    .map((name) => readFileSync(join(blobs, name), "latin1"))
    .filter((content) => content.startsWith('{"_type"'))
    .map((content) => JSON.parse(content));
}

test.each([
  ["--sbom=generator=scanner:1,DEPTH=full", "full"],
  ["--attest=type=sbom,generator=scanner:1", "no"],
])("%s: what the scanner writes is recorded about the image", async (option, depth) => {
  const layout = `layout-${depth}`;
  const words = ["build", "context", "--docker", option, "--tag", "app:1"];
  const before = (await bough("-q", "images", "--all")).stdout.split("\n").length;
  const ended = await bough(
    ...words,
    "-o",
    `type=oci,dest=${layout},tar=false`,
    "-o",
    "type=oci,dest=one.tar",
  );
  expect(ended.exitCode).toBe(0);
  expect(ended.stderr.match(/scanning the image with scanner:1/g)).toHaveLength(1);
  expect(problemsOfLayout(join(places, layout))).toEqual([]);
  const statements = statementsIn(layout);
  expect(statements.map(({ predicate }) => predicate.name).sort()).toEqual([
    `a package in /work, ${depth} depth, own`,
    "other",
  ]);
  for (const statement of statements)
    expect(statement).toMatchObject({
      _type: "https://in-toto.io/Statement/v1",
      predicateType: "https://spdx.dev/Document",
      subject: [{ digest: { sha256: expect.any(String) } }],
    });
  // Nothing of the scan is left but the image itself.
  const after = (await bough("-q", "images", "--all")).stdout.split("\n").length;
  expect(after - before).toBe(depth === "full" ? 1 : 0);
});

test.each([
  ["silent:1", "the scanner silent:1 wrote nothing to $BUILDKIT_SCAN_DESTINATION"],
  ["failing:1", "the scanner failing:1 ended with exit code 7: no database"],
  ["bare:1", "sbom.spdx.json of the scanner bare:1 is not an in-toto statement"],
  ["vex:1", 'has the predicate "https://openvex.dev/ns", not a list of packages'],
  ["none:1", "the scanner none:1 has neither ENTRYPOINT nor CMD"],
])("%s fails the build, writes nothing, and leaves no image of its own", async (scanner, message) => {
  await bough("build", "context", "--docker");
  const images = () => bough("-q", "images", "--all");
  const before = await images();
  const words = ["build", "context", "--docker", `--sbom=generator=${scanner}`];
  const { exitCode, stderr } = await bough(...words, "-o", "type=oci,dest=refused.tar");
  expect(stderr).toContain(message);
  expect(exitCode).toBe(1);
  expect(readdirSync(places)).not.toContain("refused.tar");
  expect((await images()).stdout).toBe(before.stdout);
});

test("an image that can't be removed is a warning: the scanner's own error stays", async () => {
  const token = ["--token", "t0ken-t0ken"];
  const server = await startServer({ BOUGH_HOME: home }, "--listen", "127.0.0.1:0", ...token);
  const refusing: typeof fetch = Object.assign(
    async (input: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]) =>
      init?.method === "DELETE" && String(input).includes("/v1/images/")
        ? Response.json({ error: "not today" }, { status: 403 })
        : fetch(input, init),
    { preconnect: fetch.preconnect },
  );
  try {
    const words = [
      "build",
      "context",
      "--docker",
      "--sbom=generator=failing:1",
      "-o",
      "type=oci,dest=refused.tar",
    ];
    const { exitCode, stderr } = await runBough(["--url", server.url, ...token, ...words], {
      workingDirectory: places,
      environment: { BOUGH_HOME: temporaryDirectory() },
      fetch: refusing,
    });
    expect(stderr).toContain("the image that the scanner has written to stays: ");
    expect(stderr).toContain("the scanner failing:1 ended with exit code 7");
    expect(exitCode).toBe(1);
  } finally {
    await server.stop();
  }
});

const staged = `
ARG GLOBAL
FROM scratch AS file
ARG BUILDKIT_SBOM_SCAN_STAGE=STAGES
COPY found.txt /file.txt
FROM scratch
COPY found.txt /unnamed.txt
FROM file AS derived
COPY --from=1 /unnamed.txt /derived.txt
FROM base:1 AS unneeded
ARG BUILDKIT_SBOM_SCAN_STAGE=true
RUN exit 9
FROM base:1 AS final
ARG BUILDKIT_SBOM_SCAN_STAGE=true
ARG BUILDKIT_SBOM_SCAN_CONTEXT=true
RUN [ -z "$BUILDKIT_SBOM_SCAN_CONTEXT" ]
COPY --from=derived /derived.txt /found.txt
`;
const context = "sbom-context: ./found.txt ./not/ignored.txt";

test.each([
  [
    "of the stages",
    staged.replace("STAGES", "1"),
    [],
    [context, "sbom-derived: ./derived.txt ./file.txt", "sbom-file: ./file.txt"],
  ],
  [
    "by names",
    staged.replace("STAGES", "derived,other"),
    [],
    [context, "sbom-derived: ./derived.txt ./file.txt"],
  ],
  [
    "before FROM",
    staged.replace("ARG GLOBAL", "ARG BUILDKIT_SBOM_SCAN_STAGE=stage-1").replace("STAGES", "false"),
    [],
    [context, "sbom-stage-1: ./unnamed.txt"],
  ],
  [
    "of the command line",
    staged.replace("STAGES", "true"),
    ["--build-arg", "BUILDKIT_SBOM_SCAN_STAGE=false", "--build-arg", "BUILDKIT_SBOM_SCAN_CONTEXT=false"],
    [],
  ],
  [
    "of the command line only",
    "FROM base:1 AS one\nFROM one\nCOPY found.txt /\n",
    ["--build-arg", "BUILDKIT_SBOM_SCAN_STAGE=true"],
    [],
  ],
])("an argument %s chooses what is scanned beside the image", async (_, dockerfile, words, extras) => {
  writeFiles(join(places, "staged"), {
    ...{ Dockerfile: dockerfile, "found.txt": "a package", "ignored.txt": "", "not/ignored.txt": "" },
    ".dockerignore": "ignored.txt",
  });
  const build = ["build", "staged", "--docker", "--sbom=generator=scanner:1", ...words];
  // The second build has everything from the cache.
  for (const layout of ["made", "cached"].map(
    (how) => `extras-${how}-${extras.length}-${words.length}-${dockerfile.length}`,
  )) {
    const { exitCode, stderr } = await bough(...build, "-o", `type=oci,dest=${layout},tar=false`);
    expect(exitCode, stderr).toBe(0);
    const names = statementsIn(layout).map(({ predicate }) => predicate.name);
    expect(names.sort()).toEqual(["a package in /work, no depth, own", "other", ...extras]);
  }
});

test("a target of bake is scanned, too", async () => {
  writeFiles(places, {
    "bake.json": JSON.stringify({
      target: {
        app: {
          ...{ context: "context", output: ["type=oci,dest=baked,tar=false"] },
          attest: ["type=sbom,generator=scanner:1"],
        },
      },
    }),
  });
  const { exitCode, stderr } = await bough("bake", "-f", "bake.json", "app");
  expect(stderr).toContain("scanning the image with scanner:1");
  expect(exitCode).toBe(0);
  expect(statementsIn("baked")).toHaveLength(2);
});
