/** `--metadata-file` and `--iidfile`: files that a build writes for other programs. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { runOnSmallDisk } from "../support/small-disk.ts";

let service: FakeService;
let context: string;
let outcome: RunOutcome;
/** Called whenever the service runs a command. */
let duringRun: () => void;
let home: string;
beforeEach(async () => {
  outcome = { stdout: "fine\n" };
  duringRun = () => {};
  service = await startFakeService({
    run: () => {
      duringRun();
      return outcome;
    },
  });
  service.state.addImage("base:1");
  context = temporaryDirectory();
  home = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nENV A=1\nCOPY a /\nRUN make\nCOPY a /b\n", a: "abc" });
});
afterEach(() => service.close());

const environment = () => ({
  CONTREE_URL: service.url,
  CONTREE_TOKEN: "t0ken-t0ken",
  BOUGH_HOME: home,
});

function build(...words: string[]) {
  return runBough(["build", ...words], { workingDirectory: context, environment: environment() });
}

/** All files of the context by path, with their text. */
function contents(): Record<string, string> {
  const paths = [...new Bun.Glob("**").scanSync({ cwd: context, dot: true })];
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(context, path), "utf8")]));
}

const bothFiles = ["--metadata-file", "m.json", "--iidfile", "id"];

test("the files are written after a successful build, and the metadata has every step", async () => {
  await build();
  outcome = { stdout: "again\n" };
  writeFiles(context, { a: "changed" });
  const { exitCode } = await build("--tag", "app", ...bothFiles);
  expect(exitCode).toBe(0);
  const metadata = JSON.parse(readFileSync(join(context, "m.json"), "utf8"));
  expect(metadata.image).toBe(readFileSync(join(context, "id"), "utf8"));
  const image = expect.stringMatching(/^a0000000-/);
  const operation = expect.stringMatching(/^00000000-/);
  const layer = expect.stringMatching(/^layer:[0-9a-f-]{36,64}$/);
  const none = { layer: null, image: null, operation: null, cached: null };
  expect(metadata).toEqual({
    image,
    tag: "app:latest",
    tags: ["app:latest"],
    session: expect.stringMatching(/^build:[0-9a-f]{16}$/),
    seconds: expect.any(Number),
    uploaded: { files: 1, bytes: 7 },
    exported: [],
    "image.name": "docker.io/library/app:latest",
    "buildx.build.ref": expect.stringMatching(/^default\/default\/[0-9a-z]{12}$/),
    "buildx.build.provenance": expect.objectContaining({ buildType: "urn:bough:dockerfile:v1" }),
    steps: [
      { line: 1, instruction: "FROM base:1", layer, image, operation: null, cached: true },
      { line: 2, instruction: "ENV A=1", ...none },
      { line: 3, instruction: "COPY a /", ...none },
      { line: 4, instruction: "RUN make", layer, image, operation, cached: false },
      { line: 5, instruction: "COPY a /b", ...none },
      { line: 5, instruction: "COPY a /b", layer, image, operation, cached: false },
    ].map((step) => ({
      ...step,
      stage: { index: 0, name: null },
      step: step.line,
      seconds: expect.any(Number),
      // The file is sent for the RUN. Only the engine reports the size of layers.
      uploadedBytes: step.line === 4 ? 7 : 0,
      addedBytes: null,
    })),
  });
  expect(readdirSync(context).sort()).toEqual(["Dockerfile", "a", "id", "m.json"]);
});

test("a build may copy what an earlier one has written", async () => {
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY m.json /\nRUN make\n", "m.json": "{}" });
  const { exitCode } = await build("--metadata-file", "m.json");
  expect(exitCode).toBe(0);
  expect(JSON.parse(readFileSync(join(context, "m.json"), "utf8")).uploaded).toEqual({ files: 1, bytes: 2 });
});

test("a COPY of the whole context leaves out what the two options write", async () => {
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY . /\nRUN make\n" });
  await build(...bothFiles);
  expect(JSON.parse(readFileSync(join(context, "m.json"), "utf8")).uploaded.files).toBe(2);
});

// As with docker build.
describe("the id of an earlier build is removed, and its metadata stays, after", () => {
  test.each<[string, Record<string, FileSpec>, string[]]>([
    ["a RUN that fails", {}, []],
    ["a missing context", {}, ["nowhere"]],
    ["a missing Dockerfile", {}, ["--dockerfile", "nowhere"]],
    ["a Dockerfile that does not parse", { Dockerfile: "FROMM base:1\n" }, []],
    ["a --build-arg without a value", {}, ["--build-arg", "X"]],
    ["an invalid --tag", {}, ["--tag", "UP:per:x"]],
    ["an invalid --output", {}, ["--output", "type=none-such"]],
    ["a --timeout that is not a number", {}, ["--timeout", "soon"]],
    ["an unknown --progress", {}, ["--progress", "fancy"]],
    ["a --progress that needs a terminal", {}, ["--progress", "tty"]],
  ])("%s", async (_, files, words) => {
    writeFiles(context, { ...files, "m.json": "{}", id: "old" });
    outcome = { exitCode: 1 };
    expect((await build(...words, ...bothFiles)).exitCode).toBeGreaterThan(0);
    expect(readdirSync(context).sort()).toEqual(["Dockerfile", "a", "m.json"]);
    expect(readFileSync(join(context, "m.json"), "utf8")).toBe("{}");
  });
});

describe("refused before anything is built, without changing a file:", () => {
  const usable = ["--metadata-file", "m.json"];
  test.each<[string[], string]>([
    [["--metadata-file", "nowhere/x"], "--metadata-file nowhere/x: there is no directory nowhere"],
    [[...usable, "--iidfile", "nowhere/x"], "--iidfile nowhere/x: there is no directory nowhere"],
    [[...usable, "--iidfile", "a/x"], "--iidfile a/x: a is not a directory"],
    [[...usable, "--iidfile", "a/x/y"], "--iidfile a/x/y: a part of the path is not a directory"],
    [[...usable, "--iidfile", "."], "--iidfile .: this is not a file"],
    [[...usable, "--iidfile", "new/"], "--iidfile new/: the path of a file must not end with a slash"],
    [[...usable, "--iidfile", "n".repeat(300)], `--iidfile ${"n".repeat(300)}: the name is too long`],
    [["--metadata-file", ""], '--metadata-file takes the path of a file, not ""'],
    [[...usable, "--iidfile", ""], '--iidfile takes the path of a file, not ""'],
    [["--metadata-file", "Dockerfile"], "--metadata-file Dockerfile: this is the build's Dockerfile"],
    [[...usable, "--iidfile", "./Dockerfile"], "--iidfile ./Dockerfile: this is the build's Dockerfile"],
    [
      [...usable, "--iidfile", "Dockerfile/"],
      "--iidfile Dockerfile/: the path of a file must not end with a slash",
    ],
    [[...usable, "--iidfile", "link"], "--iidfile link: this is the build's Dockerfile"],
    [
      [...usable, "--iidfile", "here/Dockerfile"],
      "--iidfile here/Dockerfile: this is the build's Dockerfile",
    ],
    [["--dockerfile", "a", "--iidfile", "a"], "--iidfile a: this is the build's a"],
    [["Dockerfile", "--iidfile", "Dockerfile"], "--iidfile Dockerfile: this is the build's Dockerfile"],
    [["--iidfile", ".dockerignore"], "--iidfile .dockerignore: this is the build's .dockerignore"],
    [
      ["--iidfile", "here/Dockerfile.dockerignore"],
      "--iidfile here/Dockerfile.dockerignore: this is the build's Dockerfile.dockerignore",
    ],
    [[...usable, "--iidfile", "./m.json"], "--metadata-file m.json and --iidfile ./m.json are the same file"],
    [
      ["--metadata-file", "new", "--iidfile", "here/new"],
      "--metadata-file new and --iidfile here/new are the same file",
    ],
    [
      [...usable, "-o", "type=oci,dest=./m.json"],
      "--metadata-file m.json: --output type=oci,dest=./m.json writes the same file",
    ],
    [
      ["--docker", "-o", "type=tar,dest=here/new", "--iidfile", "new"],
      "--iidfile new: --output type=tar,dest=here/new writes the same file",
    ],
    [
      ["--docker", "-o", "type=oci,dest=here/Dockerfile"],
      "--output type=oci,dest=here/Dockerfile: this is the build's Dockerfile",
    ],
  ])("%j", async (words, message) => {
    writeFiles(context, {
      ...{ "m.json": "{}", ".dockerignore": "m.json\n" },
      ...{ link: { link: "Dockerfile" }, here: { link: "." } },
    });
    const before = contents();
    const { exitCode, stderr } = await build(...words);
    expect(stderr).toStartWith(`[ERROR] ${message}\n`);
    expect(exitCode).toBe(2);
    expect(contents()).toEqual(before);
    expect(service.requests).toEqual([]);
  });

  // Not even root can make a file in /proc.
  test("a path that can't be written", async () => {
    writeFiles(context, { "m.json": "{}" });
    const before = contents();
    const { exitCode, stderr } = await build("--metadata-file", "m.json", "--iidfile", "/proc/bough-id");
    expect(stderr).toStartWith("[ERROR] --iidfile /proc/bough-id: cannot write a file there: ");
    expect(exitCode).toBe(2);
    expect(contents()).toEqual(before);
    expect(service.requests).toEqual([]);
  });

  test.each([
    ["--iidfile", "Dockerfile"],
    ["--timeout", "soon"],
  ])("as an event with --progress json: %s %s", async (option, value) => {
    const { stderr } = await build("--progress", "json", option, value);
    expect(JSON.parse(stderr)).toMatchObject({ type: "error", code: "usage" });
  });
});

test("a full disk is noticed before anything is built", async () => {
  const ended = await runOnSmallDisk(["build", "--metadata-file", "disk/m.json"], {
    workingDirectory: context,
    environment: environment(),
    bytes: 8192,
    usedBytes: 8192,
  });
  expect(ended).toEqual({
    exitCode: 2,
    stdout: "ballast\n",
    stderr: expect.stringMatching(
      /^\[ERROR\] --metadata-file disk\/m\.json: cannot write a file there: no space is left on the disk\n/,
    ),
  });
  expect(service.requests).toEqual([]);
});

describe("if a file can't be written when the build has ended,", () => {
  const words = ["--tag", "app", "--metadata-file", "m.json", "--iidfile", "out/id"];
  beforeEach(() => writeFiles(context, { "m.json": "{}", out: "directory/" }));
  const ways: [string, () => void][] = [
    ["the directory is gone", () => rmSync(join(context, "out"), { recursive: true, force: true })],
    [
      "a file is in the place of the directory",
      () => {
        rmSync(join(context, "out"), { recursive: true, force: true });
        writeFiles(context, { out: "no directory" });
      },
    ],
    ["a directory has the file's name", () => writeFiles(context, { "out/id/file": "other" })],
  ];

  test.each(ways)("the result is printed, and neither file is left: %s", async (_, happens) => {
    let before = {};
    duringRun = () => {
      happens();
      before = contents();
    };
    const { exitCode, stdout, stderr } = await build(...words);
    expect(stderr).toMatch(/\n\[ERROR\] cannot write --iidfile out\/id: .*\n.*standard output\.\n$/);
    expect(stdout).toMatch(/^IMAGE +TAG +SESSION\na0000000-\S+ +app:latest +build:\S+\n$/);
    expect(exitCode).toBe(1);
    expect(contents()).toEqual(before);
  });

  test("the error is the last event, and there is no event `finished`", async () => {
    duringRun = () => rmSync(join(context, "out"), { recursive: true, force: true });
    const { stdout, stderr, exitCode } = await build(...words, "--progress", "json", "-f", "json");
    const types = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).type);
    expect(types.filter((type) => type === "finished" || type === "error")).toEqual(["error"]);
    expect(types.at(-1)).toBe("error");
    expect(JSON.parse(stdout)).toMatchObject({ tag: "app:latest" });
    expect(exitCode).toBe(1);
  });
});
