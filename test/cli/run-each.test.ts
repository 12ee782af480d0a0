/** `bough run --each`: a command in each image of a list. */
import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
const directory = temporaryDirectory();
const dockerfile = (what: string) =>
  `FROM base:1\nRUN echo ${what} > /what\nWORKDIR /srv/${what}\nCMD ["cat", "/what"]\n`;

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough("images", "import", layout, "--tag", "base:1");
  const target = (what: string) => ({ "dockerfile-inline": dockerfile(what), tags: [`each:${what}`] });
  const bad = { "dockerfile-inline": "FROM base:1\nRUN exit 3\n" };
  const targets = { one: target("one"), two: target("two"), bad };
  writeFiles(directory, {
    "docker-bake.json": JSON.stringify({
      group: { default: { targets: Object.keys(targets) } },
      target: targets,
    }),
    "images.txt": "each:one\n\n# a comment\n  each:two\r\n",
  } satisfies Record<string, FileSpec>);
  await bough("bake", "--keep-going", "--results", "built.jsonl");
  writeFileSync(join(directory, "printed.json"), (await bough("bake", "--print")).stdout);
});

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: directory, environment });

interface Line {
  image: string | null;
  target: string | null;
  [key: string]: unknown;
}

/** Runs the command, and returns its results in the order of the list's names. */
async function runEach(...words: string[]) {
  const { exitCode, stdout, stderr } = await bough("run", "--each", ...words);
  const lines = stdout.split("\n");
  expect(lines.pop()).toBe("");
  const results = lines.map((line): Line => JSON.parse(line));
  const nameOf = ({ target, image }: Line) => target ?? image ?? "";
  return { exitCode, stderr, results: results.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)) };
}

const ended = { status: "exited", stderr: "", truncated: false, error: null };

describe("a command in each image of", () => {
  test("a list has a line for each result, and all are 0", async () => {
    const { exitCode, results, stderr } = await runEach("images.txt", "--jobs", "2", "--", "cat", "/what");
    const known = { seconds: expect.any(Number), operation: expect.any(String), endedAt: expect.any(String) };
    expect(results).toEqual([
      { image: "each:one", target: null, ...ended, exitCode: 0, stdout: "one\n", ...known },
      { image: "each:two", target: null, ...ended, exitCode: 0, stdout: "two\n", ...known },
    ]);
    expect(exitCode).toBe(0);
    expect(stderr).toContain("[INFO] 2 images: 2 with exit code 0, 0 with others, 0 failed\n");
  });

  test("the results of a bake names its targets, and the exit code is 1 if one has no image", async () => {
    const { exitCode, results } = await runEach("built.jsonl");
    expect(exitCode).toBe(1);
    expect(results).toMatchObject([
      {
        ...{ target: "bad", image: null, status: "failed", exitCode: null, stdout: "", operation: null },
        error: { code: "usage", message: "the target bad has no image: it was not built, or has no tag" },
      },
      { ...ended, target: "one", exitCode: 0, stdout: "one\n" },
      { ...ended, target: "two", exitCode: 0, stdout: "two\n" },
    ]);
  });

  test("what bake --print prints uses the targets' tags", async () => {
    const { exitCode, results } = await runEach("printed.json", "-s", "--", "pwd; grep -q one /what");
    expect(exitCode).toBe(1);
    expect(
      results.map(({ target, image, status, exitCode: code, stdout }) => [
        target,
        image,
        status,
        code,
        stdout,
      ]),
    ).toEqual([
      ["bad", null, "failed", null, ""],
      ["one", "each:one", "exited", 0, "/srv/one\n"],
      ["two", "each:two", "exited", 1, "/srv/two\n"],
    ]);
  });
});

test("one image that is missing, or a command that is stopped, ends no other", async () => {
  writeFileSync(join(directory, "some.txt"), "none:1\neach:one\n");
  const command = ["--pull", "never", "--timeout", "1", "-s", "--", "echo begun; sleep 60"];
  const { exitCode, results } = await runEach("some.txt", ...command);
  expect(exitCode).toBe(1);
  expect(results).toMatchObject([
    { image: "each:one", status: "failed", exitCode: null, stdout: "begun\n", error: { code: "failed" } },
    {
      image: "none:1",
      status: "failed",
      exitCode: null,
      error: { message: expect.stringContaining("none:1") },
    },
  ]);
});

test("a script and files are those of all, and images stay as they are", async () => {
  writeFileSync(
    join(directory, "script.sh"),
    'echo "$1" "$(cat /what)" "$(cat /own)"; echo changed > /what\n',
  );
  writeFileSync(join(directory, "own"), "own\n");
  const words = ["images.txt", "-F", "own:/own", "--script", "script.sh", "--", "first"];
  for (const _ of [1, 2])
    expect((await runEach(...words)).results.map(({ stdout }) => stdout)).toEqual([
      "first one own\n",
      "first two own\n",
    ]);
});

test.each([
  [["images.txt", "app:1"], "--each has the images, and app:1 is one more"],
  [["images.txt", "--keep", "--", "true"], "--each and --keep cannot be used together"],
  [["images.txt", "-d", "--", "true"], "--each and --detach cannot be used together"],
  [["images.txt", "--jobs", "0", "--", "true"], "--jobs"],
  [["none.txt", "--", "true"], "--each none.txt: "],
  [["wrong.jsonl", "--", "true"], "wrong.jsonl:2: the line has no image"],
])("%j is refused", async (words, message) => {
  writeFileSync(join(directory, "wrong.jsonl"), '{"image": "a"}\n{"name": "b"}\n');
  const { exitCode, stderr } = await bough("run", "--each", ...words);
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
});

test("--jobs without --each is refused", async () => {
  const { exitCode, stderr } = await bough("run", "--jobs", "2", "base:1", "true");
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining("--jobs needs --each"),
  });
});
