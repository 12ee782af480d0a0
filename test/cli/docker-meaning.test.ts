/** What a Dockerfile and its options mean in newer versions of Docker, built by `bough build --docker` on the engine. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: temporaryDirectory(), BOUGH_DOCKER: "1" };
const directory = temporaryDirectory();

const bough = (
  words: readonly string[],
  workingDirectory = directory,
  variables: Readonly<Record<string, string>> = {},
) => runBough(["--local", ...words], { workingDirectory, environment: { ...environment, ...variables } });

/** Builds in a directory with these files. */
function build(
  dockerfile: string,
  options: readonly string[] = [],
  files: Record<string, FileSpec> = {},
  variables: Readonly<Record<string, string>> = {},
) {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, ...files });
  return bough(["build", ".", "--progress", "plain", ...options], context, variables);
}

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  expect((await bough(["images", "import", layout, "--tag", "base:1"])).exitCode).toBe(0);
});
afterAll(() => {
  for (const each of [environment.BOUGH_HOME, directory]) rmSync(each, { recursive: true, force: true });
});

test("a tag may have capital letters: in --tag, tag, FROM, an archive's names and rmi", async () => {
  const tag = "localhost:5000/team/app:1.0-SNAPSHOT";
  expect((await build("FROM base:1\nRUN echo made > /made\n", ["--tag", tag])).exitCode).toBe(0);
  expect((await bough(["tag", tag, "app:RC1"])).exitCode).toBe(0);
  expect((await bough(["images", "export", tag, `docker-archive:saved.tar:${tag}`])).exitCode).toBe(0);
  expect((await bough(["rmi", "--force", tag, "app:RC1"])).exitCode).toBe(0);
  const imported = await bough(["-f", "json", "images", "import", "docker-archive:saved.tar"]);
  expect(JSON.parse(imported.stdout)).toMatchObject({ tag });
  expect((await build(`FROM ${tag}\nRUN cat /made\n`)).stderr).toContain("\nmade\n");
  const refused = await build("FROM base:1\n", ["--tag", "shop:1:2"]);
  expect(refused).toMatchObject({ exitCode: 2 });
  expect(refused.stderr).toContain('not a tag: "shop:1:2": "shop:1" is not a valid repository name');
});

test.each([[[]], [["--jobs", "1"]]])(
  "a base image's ONBUILD finds the stages of the Dockerfile that uses it %p",
  async (options) => {
    const triggers = "ONBUILD COPY --from=builder /x /\nONBUILD RUN --mount=from=1,target=/m cp /m/y /y\n";
    expect((await build(`FROM base:1\n${triggers}`, ["--tag", "ob:1"])).exitCode).toBe(0);
    const stages = "FROM base:1 AS builder\nRUN echo from builder > /x\nFROM builder\nRUN echo of 1 > /y\n";
    const built = await build(`${stages}FROM ob:1\nRUN cat /x /y\n`, options);
    expect(built.exitCode).toBe(0);
    expect(built.stderr).toMatch(/from builder\n.*of 1\n/);
    const failed = await build(`${stages}RUN echo broken; exit 3\nFROM ob:1\n`, options);
    expect(failed.stderr).toContain("exit code 3");
    expect(failed.stderr).not.toContain("ONBUILD COPY");
    const later = await build(`FROM ob:1\nFROM base:1 AS builder\n`, [...options, "--target", "0"]);
    expect(later.stderr).toContain("--from=builder: that stage is defined later, on line 2");
  },
);

describe("SOURCE_DATE_EPOCH", () => {
  const variable = "SOURCE_DATE_EPOCH";
  const dockerfile = `FROM dated:1\nARG ${variable}\nRUN echo "epoch: [$${variable}]"\nENV A=1\n`;
  const timesIn = (archive: string) => {
    const place = `oci-archive:${join(directory, archive)}`;
    const { stdout } = Bun.spawnSync(["skopeo", "inspect", "--config", place]);
    const { created, history } = JSON.parse(stdout.toString());
    return [created, ...history.map((line: { created: string }) => line.created)].map(
      (time) => Date.parse(time) / 1000,
    );
  };
  beforeAll(async () => {
    await build(
      "FROM base:1\nENV B=1\n",
      ["-o", `type=oci,dest=${join(directory, "base.tar")}`],
      {},
      { [variable]: "1600000000" },
    );
    expect((await bough(["images", "import", "oci-archive:base.tar", "--tag", "dated:1"])).exitCode).toBe(0);
  });

  test.each<[string, string[], Record<string, string>, number]>([
    ["as a variable", [], { [variable]: "1500000000" }, 1_500_000_000],
    ["as a build argument", ["--build-arg", `${variable}=1500000001`], { [variable]: "1" }, 1_500_000_001],
    [
      "as a build argument without a value",
      ["--build-arg", variable],
      { [variable]: "1500000002" },
      1_500_000_002,
    ],
    ["0", ["--build-arg", `${variable}=0`], {}, 0],
  ])(
    "%s: the time of the image and of its own history, and the value of an ARG",
    async (name, options, variables, time) => {
      const archive = `${name.replaceAll(" ", "-")}.tar`;
      const output = ["-o", `type=oci,dest=${join(directory, archive)}`];
      const built = await build(dockerfile, [...options, ...output], {}, variables);
      expect(built.stderr).toContain(`epoch: [${time}]`);
      expect(timesIn(archive)).toEqual([time, 1_704_067_200, 1_600_000_000, time, time, time]);
    },
  );

  // As with BuildKit, whose RUNs, WORKDIRs and directories on the way have the time of the build, too.
  test.each([
    ["copied files", "COPY d /d\n", ""],
    ["what a RUN makes, with rewrite-timestamp", "COPY d /p/d\nRUN echo x > /x\n", ",rewrite-timestamp=true"],
  ])("two builds give one digest: %s", async (_, instructions, output) => {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: `FROM base:1\n${instructions}`, "d/f": "x" });
    const digests: unknown[] = [];
    for (const name of ["one", "two"]) {
      const words = ["build", ".", "--no-cache", "-o", `type=oci,tar=false,dest=${name}${output}`];
      expect((await bough(words, context, { [variable]: "1600000000" })).exitCode).toBe(0);
      digests.push(await Bun.file(join(context, name, "index.json")).json());
      // An archive's times are whole seconds: the next build makes its files in another one.
      if (digests.length === 1) await Bun.sleep(1000 - (Date.now() % 1000));
    }
    expect(digests[0]).toEqual(digests[1]);
  });

  test.each<[string[], Record<string, string>]>([
    [["--build-arg", `${variable}=soon`], {}],
    [[], { [variable]: "soon" }],
  ])("that is no time is refused before anything runs: %p", async (options, variables) => {
    const refused = await build("FROM base:1\nRUN echo ran\n", options, {}, variables);
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(refused.stderr).toContain(`${variable} must be seconds since 1970, not "soon"`);
    expect(refused.stderr).not.toContain("RUN");
  });
});

test.each<[string[], string]>([
  [[], "buildkitsandbox"],
  [["--build-arg", "BUILDKIT_SANDBOX_HOSTNAME=mine"], "mine"],
])("the host name of a RUN: %p", async (options, name) => {
  const built = await build("FROM base:1\nRUN hostname; grep -c $(hostname) /etc/hosts\n", options);
  expect(built.stderr).toContain(`\n${name}\n1\n`);
  expect(built.stderr).not.toContain("[WARN]");
});

test("BuildKit's arguments without a meaning here are explained", async () => {
  const given = ["BUILDKIT_INLINE_CACHE=1", "BUILDKIT_SYNTAX=docker/dockerfile:1"];
  const { stderr } = await build(
    "FROM base:1\n",
    given.flatMap((each) => ["--build-arg", each]),
  );
  expect(stderr).toContain(
    "BUILDKIT_INLINE_CACHE has no effect: bough shares layers by --cache-to and --cache-from",
  );
  expect(stderr).toContain("BUILDKIT_SYNTAX has no effect: bough reads Dockerfiles itself");
});

test("a mistyped stage is named before a registry is asked for an image of that name", async () => {
  const { stderr } = await build("FROM base:1 AS build\nFROM base:1\nCOPY --from=bild /a /a\n");
  const warned = stderr.indexOf(
    "line 3: --from=bild names no stage, so it is an image; did you mean the stage build?",
  );
  expect(warned).toBeGreaterThan(0);
  expect(stderr.indexOf("docker.io/library/bild")).toBeGreaterThan(warned);
});

const fromStage = "FROM base:1 AS made\nRUN echo x > /f\nFROM base:1\n";
test.each([
  ["COPY", "FROM base:1\nENV A=1\nCOPY . /x\n", 3, "/x/d/.wh.foo"],
  ["COPY to such a name", "FROM base:1\nCOPY d/f /.wh.f\n", 2, "/.wh.f"],
  ["COPY --from", `${fromStage}COPY --from=made /f /.wh.d/\n`, 4, "/.wh.d"],
  ["ADD of an archive", "FROM base:1\nADD a.tar /x\n", 2, "/x/d/.wh.foo"],
  ["WORKDIR", "FROM base:1\nWORKDIR /.wh.d\n", 2, "/.wh.d"],
  ["RUN", "FROM base:1\nRUN mkdir -p /x/d && echo x > /x/d/.wh.foo\n", 2, "/x/d/.wh.foo"],
])("a name that marks a deleted file is refused where it is made: %s", async (_, dockerfile, line, path) => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, "d/.wh.foo": "", "d/f": "" });
  Bun.spawnSync(["tar", "-cf", "a.tar", "d"], { cwd: context });
  const built = await bough(["build", "."], context);
  expect(built.exitCode).toBe(1);
  expect(built.stderr).toContain(`Dockerfile:${line}: `);
  expect(built.stderr).toContain(
    `${path} can't be in a layer: a name that begins with .wh. means that a file is deleted`,
  );
});

test("a command that leaves such a name to no layer, or fails, is not refused for it", async () => {
  const built = await build(
    "FROM base:1\nRUN echo x > /.wh.foo && rm /.wh.foo\nRUN echo x > /.wh.foo; exit 3\n",
  );
  expect(built.stderr).toContain("exit code 3");
  expect(built.stderr).not.toContain(".wh. means");
});

test("a secret that can't be executed is named with the mode that it needs", async () => {
  const mount = (mode: string) => `RUN --mount=type=secret,id=ex,target=/root/ex.sh${mode} /root/ex.sh\n`;
  const options = ["--secret", "id=ex,src=ex.sh"];
  const files = { "ex.sh": "#!/bin/sh\necho ran; exit 126\n" };
  const refused = await build(`FROM base:1\n${mount("")}`, options, files);
  expect(refused.stderr).toContain("A --mount needs mode=0755 for that: type=secret,target=/root/ex.sh.");
  const executed = await build(`FROM base:1\n${mount(",mode=0700")}`, options, files);
  expect(executed.stderr).toContain("\nran\n");
  expect(executed.stderr).not.toContain("--mount needs");
});

test("directories that a COPY makes get a --chmod in digits, whole", async () => {
  const copies =
    "COPY --chmod=777 empty /cache\nCOPY --chmod=770 d/f /srv/app/f\nCOPY --from=a --chmod=2775 /etc/passwd /opt/srv/\n";
  const stat = "RUN stat -c '%n %a' /cache /srv /srv/app /opt /opt/srv /opt/srv/passwd\n";
  const files = { empty: "directory/", "d/f": "1" } as const;
  const { stderr } = await build(`FROM base:1 AS a\nFROM base:1\n${copies}${stat}`, [], files);
  const expected = ["cache 777", "srv 770", "srv/app 770", "opt 775", "opt/srv 775", "opt/srv/passwd 2775"];
  expect([...(stderr.match(/(?<=\] \/)[a-z/]+ \d+$/gm) ?? [])]).toEqual(expected);
});

test("--no-cache and --no-cache-filter begin with empty cache mounts, which RUNs of that build share", async () => {
  const mounted = "RUN --mount=type=cache,id=generations,target=/c";
  const dockerfile = `FROM base:1 AS a\nARG N\n${mounted} touch /c/$N\nFROM a\n${mounted} echo has $(ls /c)\n`;
  const contents = async (name: string, ...options: string[]) => {
    const built = await build(dockerfile, ["--build-arg", `N=${name}`, ...options]);
    return /(?<=\] has ).*/.exec(built.stderr)?.[0];
  };
  expect(await contents("1")).toBe("1");
  expect(await contents("2")).toBe("1 2");
  expect(await contents("3", "--no-cache")).toBe("3");
  expect(await contents("4")).toBe("3 4");
  expect(await contents("5", "--no-cache-filter", "a")).toBe("5");
});

test("BUILDKIT_CACHE_MOUNT_NS keeps the cache mounts of a build to itself, and none of its steps out of the cache", async () => {
  const dockerfile =
    "FROM base:1\nARG N\nRUN --mount=type=cache,id=apart,target=/c touch /c/$N; echo has $(ls /c)\n";
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile });
  const run = (name: string, namespace: string) => {
    const values = [`N=${name}`, `BUILDKIT_CACHE_MOUNT_NS=${namespace}`];
    return bough(["build", ".", ...values.flatMap((value) => ["--build-arg", value])], context);
  };
  expect((await run("1", "")).stderr).toContain("\nhas 1\n");
  const apart = await run("2", "team");
  expect(apart.stderr).toContain("\nhas 2\n");
  expect(apart.stderr).not.toContain("BUILDKIT_CACHE_MOUNT_NS");
  expect((await run("3", "team")).stderr).toContain("\nhas 2 3\n");
  expect((await run("4", "")).stderr).toContain("\nhas 1 4\n");
  expect((await run("4", "other")).stderr).toContain("1 of 1 layer cached");
});

test("a base that was packed from a directory of mode 0700 is open to other users, in builds and in run", async () => {
  const prepare = (root: string) => chmodSync(root, 0o700);
  const layout = await makeBusyboxLayout(temporaryDirectory(), { prepare });
  expect((await bough(["images", "import", layout, "--tag", "closed:1"])).exitCode).toBe(0);
  const built = await build("FROM closed:1\nRUN true\nUSER 1000\nRUN echo $(id -u) $(stat -c %a /)\n");
  expect(built.stderr).toContain("\n1000 755\n");
  expect((await bough(["run", "--user", "1000", "closed:1", "stat", "-c", "%a", "/"])).stdout).toBe("755\n");
});

test("a secret, an agent and the host's network are asked for only by what the target needs, secrets only if it has to run", async () => {
  const token = join(directory, "token");
  writeFiles(directory, { token: "abc" });
  const dockerfile = [
    "FROM base:1 AS released",
    "RUN --mount=type=secret,id=npm,required wc -c < /run/secrets/npm",
    "FROM base:1 AS hosted",
    "RUN --network=host true",
    "FROM base:1 AS keyed",
    "RUN --mount=type=ssh,required true",
    "FROM base:1 AS tested",
    "RUN echo tested",
    "",
  ].join("\n");
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile });
  const run = (target: string, ...options: string[]) =>
    bough(["build", ".", "--target", target, ...options], context);
  expect((await run("tested")).stderr).toContain("\ntested\n");
  const refused = await run("released");
  expect(refused).toMatchObject({ exitCode: 2 });
  expect(refused.stderr).toContain("Dockerfile:2: --mount=type=secret: npm is required, but was not given");
  expect((await run("keyed")).stderr).toContain(
    "Dockerfile:6: --mount=type=ssh: default is required, but was not given",
  );
  expect((await run("hosted")).stderr).toContain("Dockerfile:4: --network=host is not allowed");
  expect((await run("released", "--secret", `id=npm,src=${token}`)).stderr).toContain("\n3\n");
  const cached = await run("released");
  expect(cached.exitCode).toBe(0);
  expect(cached.stderr).toContain("1 of 1 layer cached");
  expect((await run("released", "--no-cache")).exitCode).toBe(2);
  expect((await run("tested", "--check")).exitCode).toBe(0);
});

test("a here-document with #! may have any size, and is a file in /dev/pipes: for users, with SHELL, beside mounts", async () => {
  const padding = `# ${"x".repeat(200)}\n`.repeat(1_000);
  const script = (name: string, body: string) => `RUN <<${name}\n#!/bin/sh\n${padding}${body}\n${name}\n`;
  const dockerfile = [
    "FROM base:1\n",
    script("EOF", 'echo "1 $0"'),
    'SHELL ["/bin/sh", "-euc"]\nUSER 1000\n',
    script('"a b"', 'echo "2 $0 $(id -u)"').replace(/\n"a b"\n$/, "\na b\n"),
    script("EOF", "ls -d /dev/pipes/* /in/kept").replace("RUN", "RUN --mount=source=d,target=/in"),
    "RUN ls -d /dev/pipes || echo gone\n",
  ].join("");
  const built = await build(dockerfile, [], { "d/kept": "" });
  expect(built.exitCode).toBe(0);
  for (const line of ["1 /dev/pipes/EOF", "2 /dev/pipes/a b 1000", "/dev/pipes/EOF\n/in/kept", "gone"])
    expect(built.stderr).toContain(`\n${line}\n`);
  const failed = await build("FROM base:1\nRUN <<EOF\n#!/bin/sh\nexit 3\nEOF\n");
  expect(failed.stderr).toContain("the command failed with exit code 3");
});
