/** `bough bake` on the embedded engine: what targets share, how they wait for each other, and how a bake fails. */
import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await expectDone(bough(temporaryDirectory(), "images", "import", layout, "--tag", "base:1"));
});

const bough = (workingDirectory: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory, environment });

async function expectDone(ending: ReturnType<typeof bough>): Promise<{ stdout: string; stderr: string }> {
  const { exitCode, stdout, stderr } = await ending;
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  return { stdout, stderr };
}

function makeProject(files: Record<string, FileSpec>): string {
  const directory = temporaryDirectory();
  writeFiles(directory, files);
  return directory;
}

/** Returns the RUNs that were started, each with its step's label. */
function runsIn(stderr: string): string[] {
  return [...stderr.matchAll(/^\[INFO\] (\[.*\]) RUN spawned op=\S+ (.*)$/gm)]
    .map(([, label, title]) => `${label} ${title}`)
    .sort();
}

async function read(directory: string, image: string, path: string): Promise<string> {
  return (await expectDone(bough(directory, "cat", `${image}:${path}`))).stdout;
}

describe("targets of three contexts", () => {
  const shared = "FROM base:1 AS tools\nRUN echo tools > /tools\nFROM tools\n";
  const directory = makeProject({
    "compose.yaml": [
      "services:",
      "  api: {image: 'api:1', build: api}",
      "  web: {image: 'web:1', build: {context: web, args: {MODE: fast}}}",
      "  all:",
      "    image: all:1",
      "    build:",
      "      dockerfile_inline: |",
      "        FROM api",
      "        COPY --from=web /mode /mode",
      "        RUN --mount=from=web,target=/web cat /web/tools /own /mode > /all",
      "      additional_contexts: {api: 'service:api', web: 'service:web'}",
      "",
    ].join("\n"),
    "api/Dockerfile": `${shared}COPY own /own\n`,
    "api/own": "api\n",
    "web/Dockerfile": `${shared}ARG MODE\nRUN echo $MODE > /mode\n`,
  });

  test("wait for those that they are made of, and share what is the same", async () => {
    const { stdout, stderr } = await expectDone(bough(directory, "bake"));
    // Either of them makes the layer.
    expect(runsIn(stderr).map((line) => line.replace(/^\[(api|web) tools 2\/2\]/, "[either]"))).toEqual([
      "[all 3/3] RUN --mount=from=web,target=/web cat /web/tools /own /mode > /all",
      "[either] RUN echo tools > /tools",
      "[web stage-1 3/3] RUN echo $MODE > /mode",
    ]);
    expect(stderr).toContain("[INFO] [all 1/3] FROM api is image ");
    expect(stderr).toMatch(/^\[INFO\] \[all 3\/3\] done in [\d.]+ s: RUN --mount=from=web/m);
    expect(stdout.split("\n").map((line) => line.split(/\s+/).toSpliced(1, 1))).toEqual([
      ["TARGET", "TAG", "SESSION"],
      ...["all", "api", "web"].map((name) => [name, `${name}:1`, expect.stringMatching(/^build:\w{16}$/)]),
      [""],
    ]);
    expect(await read(directory, "all:1", "/all")).toBe("tools\napi\nfast\n");
  });

  test("run nothing again, together or alone", async () => {
    for (const words of [
      ["bake"],
      ["bake", "web"],
      ["build", "--docker", "api"],
      ["build", "--docker", "web", "--build-arg", "MODE=fast"],
    ])
      expect(runsIn((await expectDone(bough(directory, ...words))).stderr)).toEqual([]);
  });

  test("share what they make again with --no-cache", async () => {
    const { stderr } = await expectDone(bough(directory, "bake", "api", "web", "--no-cache"));
    expect(runsIn(stderr)).toHaveLength(2);
    expect(runsIn((await expectDone(bough(directory, "bake"))).stderr)).toHaveLength(1);
  });

  test("make a layer again whose image is lost", async () => {
    const plan = await expectDone(bough(directory, "bake", "api", "web", "--metadata-file", "plan.json"));
    expect(runsIn(plan.stderr)).toEqual([]);
    const { api } = JSON.parse(readFileSync(join(directory, "plan.json"), "utf8"));
    const { image } = api.steps.find(({ instruction }: { instruction: string }) =>
      instruction.startsWith("RUN"),
    );
    await expectDone(bough(directory, "untag", "api:1"));
    await expectDone(bough(directory, "untag", "web:1"));
    await expectDone(bough(directory, "rmi", image, "--force"));
    writeFiles(directory, {
      "api/own": "changed\n",
      "web/Dockerfile": `${shared}ARG MODE\nRUN echo new $MODE > /mode\n`,
    });
    const { stderr } = await expectDone(bough(directory, "bake", "api", "web"));
    expect(runsIn(stderr).filter((line) => line.includes("tools >"))).toHaveLength(1);
    expect(await read(directory, "web:1", "/mode")).toBe("new fast\n");
  });
});

const inline = (text: string, others: object = {}) => ({ "dockerfile-inline": text, ...others });
const bakeFile = (target: object, group: readonly string[] = Object.keys(target)) => ({
  "docker-bake.json": JSON.stringify({ group: { default: { targets: group } }, target }, undefined, 1),
});

test("a target that only others need has no tag, and is in the metadata", async () => {
  const directory = makeProject(
    bakeFile(
      {
        lib: inline("FROM base:1\nRUN echo lib > /lib\n", { tags: ["lib:1"] }),
        app: inline("FROM lib\nRUN cat /lib\n", {
          tags: ["app:1", "app:2"],
          contexts: { lib: "target:lib" },
        }),
      },
      ["app"],
    ),
  );
  const { stdout } = await expectDone(
    bough(directory, "bake", "--metadata-file", "built.json", "--format", "json"),
  );
  const result = JSON.parse(stdout);
  expect(Object.keys(result)).toEqual(["app"]);
  const metadata = JSON.parse(readFileSync(join(directory, "built.json"), "utf8"));
  expect(Object.keys(metadata)).toEqual(["app", "lib"]);
  expect([metadata.app.image, metadata.app["image.name"], metadata.lib.tags]).toEqual([
    result.app.image,
    "docker.io/library/app:1,docker.io/library/app:2",
    [],
  ]);
  const { stdout: images } = await expectDone(bough(directory, "images", "--tagged"));
  expect([images.includes("app:2"), images.includes("lib:1")]).toEqual([true, false]);
});

test("a bake file in HCL with functions, a matrix and contexts of other targets is built", async () => {
  const directory = temporaryDirectory();
  cpSync(join(import.meta.dir, "../cases/bake/hcl-build"), directory, { recursive: true });
  const words = ["--var", "BASE=base:1", "--var", "VERSION=2.0.7", "--set", "all.tags=all:hcl"];
  await expectDone(bough(directory, "bake", ...words));
  expect(await read(directory, "all:hcl", "/all")).toBe(
    "Web 8080 2.0.7 2 text\nApi 9001 2.0.7 2 text\nbase 2.0.7\n",
  );
  expect(await read(directory, "bake-api:2.0.7-port-9001", "/name")).toBe("Api 9001 2.0.7 2 text\n");
});

test("a failure ends the other targets, and says which, and what was done", async () => {
  const directory = makeProject(
    bakeFile({
      quick: inline("FROM base:1\nRUN echo quick > /quick\n"),
      bad: inline("FROM quick\nRUN echo oops >&2; exit 3\n", { contexts: { quick: "target:quick" } }),
      slow: inline("FROM quick\nRUN sleep 600\n", { contexts: { quick: "target:quick" } }),
      child: inline("FROM slow\n", { contexts: { slow: "target:slow" } }),
    }),
  );
  const { exitCode, stdout, stderr } = await bough(
    directory,
    "bake",
    "--jobs",
    "4",
    "--metadata-file",
    "built.json",
  );
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toContain("[bad 2/2] oops\n");
  expect(stderr).toMatch(/^\[INFO\] built: quick; failed or cancelled: bad, slow; not begun: child$/m);
  expect(stderr).toMatch(
    /^\[ERROR\] target bad \(docker-bake\.json:\d+\): bad \(dockerfile-inline\):2: the command failed with exit code 3/m,
  );
  expect(existsSync(join(directory, "built.json"))).toBe(false);
});

test("a target for two platforms has the image of each in its result", async () => {
  const platforms = ["linux/amd64", "linux/arm64"];
  const both = inline("FROM scratch\nARG TARGETARCH\nCOPY docker-bake.json /$TARGETARCH\n", { platforms });
  const directory = makeProject(bakeFile({ both }));
  const result = JSON.parse(
    (await expectDone(bough(directory, "bake", "-f", "docker-bake.json", "--format", "json"))).stdout,
  );
  const images = result.both.platforms.map(({ image }: { image: string }) => image);
  expect(result.both.platforms.map(({ platform }: { platform: string }) => platform)).toEqual(platforms);
  expect((await expectDone(bough(directory, "bake", "-q"))).stdout).toBe(`${images.join("\n")}\n`);
});

const machine = process.arch === "arm64" ? "arm64" : "amd64";
const both = ["amd64", "arm64"];

test.each<[string[], string[], Record<string, string>]>([
  [both, both, { linux_amd64: "amd64", linux_arm64: "arm64" }],
  [both, ["arm64"], { ".": "arm64" }],
  [both, [], { ".": machine }],
  // The only image is that for every platform, whatever its own.
  [["arm64"], ["amd64"], { ".": "arm64" }],
  [["arm64"], both, { linux_amd64: "arm64", linux_arm64: "arm64" }],
  [[], both, { linux_amd64: machine, linux_arm64: machine }],
])(
  "of a target for %j, one for %j takes by platform what docker buildx bake takes",
  async (own, others, taken) => {
    const lib = inline("FROM scratch\nARG TARGETARCH\nCOPY docker-bake.json /$TARGETARCH\n", {
      platforms: own,
    });
    const text = "FROM lib\nCOPY --from=lib / /copied/\n";
    const output = ["type=local,dest=out"];
    const app = inline(text, { platforms: others, contexts: { lib: "target:lib" }, output });
    const directory = makeProject(bakeFile({ lib, app }));
    await expectDone(bough(directory, "bake", "app"));
    for (const [place, architecture] of Object.entries(taken))
      for (const path of [architecture, `copied/${architecture}`])
        expect([path, existsSync(join(directory, "out", place, path))]).toEqual([path, true]);
  },
);

test("services with one image and one build share it", async () => {
  const build = "{image: 'shared:1', build: {dockerfile_inline: 'FROM base:1'}}";
  const directory = makeProject({ "compose.yaml": `services: {one: ${build}, two: ${build}}\n` });
  await expectDone(bough(directory, "bake"));
});

test("a file named - is no standard input, and a cache of another machine is left out with a warning", async () => {
  const directory = makeProject({
    ...bakeFile({
      app: { dockerfile: "./-", "cache-to": ["type=gha,mode=max"], "cache-from": ["type=gha"] },
    }),
    "-": "FROM base:1\n",
  });
  const { stderr } = await expectDone(bough(directory, "bake"));
  expect(stderr.match(/^\[WARN\] .*$/gm)).toEqual([
    "[WARN] target app: cache-from: type=gha needs ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN, which actions of a GitHub job have: it is left out",
    "[WARN] target app: cache-to: type=gha needs ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN, which actions of a GitHub job have: it is left out",
  ]);
});

test("--sign=false needs nothing that is pushed, as in a build", async () => {
  const directory = makeProject({ ...bakeFile({ app: {} }), Dockerfile: "FROM base:1\n" });
  for (const command of ["bake", "build"]) await expectDone(bough(directory, command, "--sign=false"));
});

test("an invalid --timeout is refused without advice about an option that bake lacks", async () => {
  const directory = makeProject({ "docker-bake.json": '{"target": {"default": {}}}' });
  expect(await bough(directory, "bake", "--timeout", "5m")).toEqual({
    exitCode: 2,
    stdout: "",
    stderr:
      '[ERROR] --timeout takes a positive whole number, not "5m"\nIt takes seconds, as in --timeout 1800.\n',
  });
});

test.each(["first.json", "compose.yaml", "lib/compose.yaml", "lib/base.yaml", "Dockerfile"])(
  "--metadata-file %s would replace what is baked",
  async (path) => {
    const directory = makeProject({
      "first.json": "{}",
      "last.json": '{"target": {"app": {"args": {"A": "b"}}}}',
      "compose.yaml": "include: [lib/compose.yaml]\nservices: {app: {build: .}}\n",
      "lib/compose.yaml": "services: {lib: {extends: {file: base.yaml, service: base}, build: ..}}\n",
      "lib/base.yaml": "services: {base: {image: 'a:1'}}\n",
      Dockerfile: "FROM base:1\n",
    });
    const before = readFileSync(join(directory, path), "utf8");
    const files = ["-f", "first.json", "-f", "compose.yaml", "-f", "last.json"];
    const { exitCode, stderr } = await bough(directory, "bake", ...files, "--metadata-file", path);
    expect(stderr).toContain(`--metadata-file ${path}`);
    expect([exitCode, readFileSync(join(directory, path), "utf8")]).toEqual([2, before]);
  },
);

test("a compose file without a build is no mistake", async () => {
  const directory = makeProject({ "compose.yaml": "services: {db: {image: postgres}}\n" });
  const { stdout, stderr } = await expectDone(bough(directory, "bake"));
  expect([stdout, stderr]).toEqual(["", "[WARN] there is nothing to build: no service has a build\n"]);
});

test("events name their target, and keep its own numbers", async () => {
  const directory = makeProject(
    bakeFile({ a: inline("FROM base:1\nRUN echo a\n"), b: inline("FROM base:1\nRUN echo b\n") }),
  );
  const { stderr } = await expectDone(bough(directory, "bake", "--progress", "json"));
  const events = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  for (const target of ["a", "b"]) {
    const own = events.filter((event) => event.target === target);
    expect(own.filter(({ type }) => type === "step").map(({ step, steps }) => [step, steps])).toEqual([
      [1, 2],
      [2, 2],
    ]);
    expect(
      own
        .filter(({ type }) => type === "output")
        .map(({ text }) => text)
        .join(""),
    ).toBe(`${target}\n`);
    expect(own.at(-1)).toMatchObject({ type: "finished", steps: 2 });
  }
});

describe("before anything is run, a target is refused by its name and place", () => {
  test.each<[string, object, string, (readonly string[])?]>([
    ["an invalid size", { "shm-size": "x" }, 'shm-size: invalid size "x"'],
    [
      "an unknown instruction",
      inline("FROM base:1\nRUNN x\n"),
      "bad (dockerfile-inline):2: unknown instruction: RUNN",
    ],
    ["a missing context", { context: "nope" }, "the build context nope does not exist"],
    ["a missing Dockerfile", { dockerfile: "nope" }, "cannot read the Dockerfile nope"],
    ["a path elsewhere", { context: ".." }, "context: .. is outside of this directory"],
    ["a name that begins with dots", { context: "..more" }, "the build context ..more does not exist"],
    [
      "a secret elsewhere",
      { secret: ["id=s,src=/etc/hostname"] },
      "secret: /etc/hostname is outside of this directory",
    ],
    [
      "an output elsewhere",
      { output: ["type=local,dest=../out"] },
      "output: ../out is outside of this directory",
      ["--allow", "fs.read=.."],
    ],
    [
      "a context that leads elsewhere through a name like an address's",
      { context: "x://../.." },
      "context: x://../.. is outside of this directory",
    ],
    [
      "a further context that does",
      { contexts: { x: "docker:/../.." } },
      "contexts.x: docker:/../.. is outside of this directory",
    ],
    [
      "a secret whose id is a file elsewhere",
      { secret: [{ id: "/etc/hostname" }] },
      "secret: /etc/hostname is outside of this directory",
    ],
    [
      "a Dockerfile elsewhere for a context at an address",
      { context: "https://host.example/app.git", dockerfile: "/etc/hostname" },
      "dockerfile: /etc/hostname is outside of this directory",
    ],
    [
      "an SSH agent",
      { ssh: ["default"] },
      "it asks for the SSH agent default\nIf you trust the file, allow it: --allow ssh",
    ],
    ["the tag of another target", { tags: ["good"] }, "the tag good is also that of the target good"],
    [
      "the output of another target",
      { output: ["type=tar,dest=./out.tar"] },
      "/out.tar is also that of the target good",
    ],
    [
      "a secret that is not there",
      { secret: ["id=s,src=nowhere"] },
      "secret id=s: cannot read nowhere: no such file or directory\nName its file or variable: secret id=s,src=FILE or secret id=s,env=NAME.",
    ],
    ["a cache of an unknown type", { "cache-from": ["type=floppy"] }, 'unknown type "floppy"'],
    ["the machine's network", { network: "host" }, "it asks for the machine's network", ["--allow", "fs=*"]],
    [
      "an unknown call",
      { call: "floppy" },
      "call=floppy: only check, outline, targets and build are supported",
    ],
    ["standard input", { context: "-" }, "a bake file can't name standard input"],
  ])("%s", async (_, fields, message, words = []) => {
    const directory = makeProject({
      ...bakeFile({
        good: inline("FROM base:1\nRUN exit 9\n", {
          tags: ["good:latest"],
          output: ["type=tar,dest=out.tar"],
        }),
        bad: { ...inline("FROM base:1\n"), ...fields },
      }),
      Dockerfile: "FROM base:1\n",
    });
    if ("dockerfile" in fields) writeFiles(directory, bakeFile({ bad: fields }));
    const { exitCode, stdout, stderr } = await bough(directory, "bake", ...words);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toMatch(/^\[ERROR\] target bad \(docker-bake\.json:\d+\): /m);
    expect(stderr).toContain(message);
  });
});

test("the table has a row for each platform of a target", async () => {
  const target = { context: ".", tags: ["platforms:1"], platforms: ["linux/amd64", "linux/riscv64"] };
  const directory = makeProject({
    "docker-bake.json": JSON.stringify({ target: { default: target, small: { context: "." } } }),
    Dockerfile: "FROM scratch\nARG TARGETARCH\nCOPY f /$TARGETARCH\n",
    f: "f",
  });
  const { stdout } = await expectDone(bough(directory, "bake", "default", "small"));
  const rows = stdout.split("\n").map((line) => line.split(/ +/));
  expect(rows[0]).toEqual(["TARGET", "IMAGE", "PLATFORM", "TAG", "SESSION"]);
  expect(rows.slice(1, -1).map(([target, , platform, tag]) => [target, platform, tag])).toEqual([
    ["default", "linux/amd64", "platforms:1"],
    ["default", "linux/riscv64", "platforms:1"],
    ["small", "-", "-"],
  ]);
});
