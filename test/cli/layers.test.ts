/** `bough layers`: what a set of images has in several layers. */
import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFileTable } from "../../src/cli/layers/shared-files.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
const directory = temporaryDirectory();

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: directory, environment });

/** Bytes of `seq 1 20000` and of `seq 1 10000`. */
const [toolBytes, notesBytes] = [108_894, 48_894];
// The times are those of /name, so that layers of images with different ones have different archives.
const tool = "RUN seq 1 20000 > /tool && seq 1 10000 > /notes && touch -r /name /tool /notes";
const name = (text: string) => `RUN echo ${text} > /name && touch -d @10000${text.length} /name`;
const images: Record<string, string> = {
  // The tool after a step that differs in each.
  "one:1": `FROM base:1\n${name("a")}\nCOPY app .\n${tool}\n`,
  "two:1": `FROM base:1\n${name("bb")}\nCOPY app .\n${tool}\n`,
  "three:1": `FROM base:1\n${name("ccc")}\nCOPY app .\n${tool}\nENV LATER=1\n`,
  // Only the variable differs, which has no layer: the archives are the same.
  "red:1": `FROM base:1\n${name("a")}\nENV COLOR=red\n${tool}\n`,
  "blue:1": `FROM base:1\n${name("a")}\nENV COLOR=blue\n${tool}\n`,
  "shared:1": `FROM base:1\n${name("a")}\n${tool}\nRUN echo one > /last\n`,
  "shared:2": `FROM base:1\n${name("a")}\n${tool}\nRUN echo two > /last\n`,
  "owner:1": "FROM base:1\nRUN seq 1 20000 > /tool\nRUN chmod 600 /tool\n",
  "other:1": "FROM base:1\nRUN seq 1 20000 > /tool; echo other > /name\n",
  "based:1": `FROM base:2\n${name("a")}\n`,
};

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  await bough("images", "import", await makeBusyboxLayout(temporaryDirectory()), "--tag", "base:1");
  const prepare = (root: string) => writeFileSync(join(root, "etc/second"), "second\n");
  const second = await makeBusyboxLayout(temporaryDirectory(), { prepare });
  await bough("images", "import", second, "--tag", "base:2");
  const target = Object.fromEntries(
    Object.entries(images).map(([tag, text]) => [
      tag.replace(":", "-"),
      { "dockerfile-inline": text, tags: [tag] },
    ]),
  );
  const bad = { "dockerfile-inline": "FROM base:1\nRUN exit 3\n" };
  const group = { default: { targets: [...Object.keys(target), "bad"] } };
  writeFiles(directory, {
    "docker-bake.json": JSON.stringify({ group, target: { ...target, bad } }),
    app: "the same in all\n",
    "again.Dockerfile": "FROM base:1\nRUN seq 1 20000 > /tool\n",
    "empty.txt": "# nothing\n",
    "images.txt": "one:1\n\n# a comment\ntwo:1\n",
  } satisfies Record<string, FileSpec>);
  const { stderr } = await bough("bake", "--keep-going", "--results", "built.jsonl");
  expect(stderr).toContain("bad");
});

async function compare(...words: string[]) {
  const { exitCode, stdout, stderr } = await bough("layers", ...words, "-f", "json");
  expect([exitCode, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

const sameTool = { instructions: [tool], files: 2, bytes: toolBytes + notesBytes };

describe("files that are the same in layers that are not", () => {
  test("are found with their cost, and where their instruction should be", async () => {
    const names = ["one:1", "two:1", "three:1"];
    const { findings, ...counts } = await compare(...names);
    const diskBytes = 2 * (toolBytes + notesBytes);
    // The base is one layer of all three.
    expect(counts).toMatchObject({
      ...{ images: 3, layers: 10, unread: 0 },
      ...{ diskBytes: diskBytes + 2 * 16, registryBytes: diskBytes },
    });
    expect(findings).toEqual([
      {
        ...{ kind: "moved", ...sameTool, images: names, layers: 3, diskBytes, registryBytes: diskBytes },
        before: ["a", "bb", "ccc"].map(name),
        largest: [
          { path: "/tool", size: toolBytes },
          { path: "/notes", size: notesBytes },
        ],
        advice: expect.stringContaining(`Put it before \`${name("a")}\`, `),
      },
      // A COPY keeps the times of its files: a registry stores the layer once.
      {
        ...{ kind: "moved", instructions: ["COPY app ."], images: names, layers: 3, files: 1, bytes: 16 },
        ...{ diskBytes: 32, registryBytes: 0, before: ["a", "bb", "ccc"].map(name) },
        largest: [{ path: "/app", size: 16 }],
        advice: expect.any(String),
      },
    ]);
  });

  test("are found after a variable, which has no layer", async () => {
    const { findings } = await compare("red:1", "blue:1");
    expect(findings).toMatchObject([
      { kind: "moved", ...sameTool, before: ["ENV COLOR=red", "ENV COLOR=blue"], registryBytes: 0 },
    ]);
  });

  test("may be made again by a later instruction of one image", async () => {
    const { findings } = await compare("owner:1");
    expect(findings).toMatchObject([
      {
        ...{ kind: "rewritten", images: ["owner:1"], files: 1, diskBytes: toolBytes },
        instructions: ["RUN seq 1 20000 > /tool", "RUN chmod 600 /tool"],
      },
    ]);
  });

  test("may be made by different instructions", async () => {
    const { findings } = await compare("three:1", "other:1");
    const other = "RUN seq 1 20000 > /tool; echo other > /name";
    expect(findings).toMatchObject([
      { kind: "different", instructions: [tool, other], files: 1, before: [name("ccc"), other] },
    ]);
  });

  test("may be in different bases", async () => {
    const { findings } = await compare("one:1", "based:1");
    expect(findings[0]).toMatchObject({ kind: "bases", images: ["one:1", "based:1"], layers: 2 });
  });

  test("may be made again although nothing before them differs", async () => {
    for (const tag of ["again:1", "again:2"]) {
      const build = await bough("build", "--no-cache", "--file", "again.Dockerfile", "--tag", tag, ".");
      expect(build.exitCode).toBe(0);
    }
    const { findings } = await compare("again:1", "again:2");
    expect(findings).toMatchObject([
      { kind: "changed", instructions: ["RUN seq 1 20000 > /tool"], diskBytes: toolBytes, before: [] },
    ]);
  });

  test("are shown in a table, with advice below", async () => {
    const { exitCode, stdout, stderr } = await bough("layers", "red:1", "blue:1");
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toBe(
      `2 images, 4 layers with ${/with (.*) of files/.exec(stdout)?.[1]} of files.
Copies of the same files: 158 kB of the disk, 0 B in a registry before compression.

   DISK    REGISTRY  LAYERS  FILES  INSTRUCTION
1  158 kB  0 B       2       2      ${tool.slice(0, 71)}…

1. \`${tool.slice(0, 71)}…\` is in 2 images after differing steps: 1 x 158 kB (such as /tool).
   Put it before \`ENV COLOR=red\` or \`ENV COLOR=blue\`, if it needs nothing of that.
`,
    );
  });
});

test("images that share all that they have in common are said to", async () => {
  const { exitCode, stdout } = await bough("layers", "shared:1", "shared:2");
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^2 images, 5 layers with .* of files: no file is in two of the layers\.\n$/);
  expect((await compare("shared:1", "shared:2")).findings).toEqual([]);
  // Two names of one image are one image.
  expect(await compare("one:1", "tag:one:1")).toMatchObject({ images: 1, findings: [] });
});

test("a list names the images, as do results of a bake", async () => {
  const of = (words: { findings: { images: string[] }[] }) => words.findings[0]?.images;
  expect(of(await compare("--list", "images.txt"))).toEqual(["one:1", "two:1"]);
  expect(of(await compare("three:1", "--list", "images.txt", "-n", "1"))).toEqual([
    "three:1",
    "one:1",
    "two:1",
  ]);
  const baked = await bough("layers", "--list", "built.jsonl", "-f", "json");
  expect(baked.stderr).toBe("[WARN] 1 target of the list without an image: left out\n");
  expect(of(JSON.parse(baked.stdout))).toContain("one-1");
  const short = await bough("layers", "--list", "built.jsonl", "-n", "1");
  expect(short.stdout).toMatch(/\n\d more: -n \d shows all\.\n$/);
});

test.each([
  [[], 2, "no image is given"],
  [["--list", "none.txt"], 2, "--list none.txt: "],
  [["--list", "empty.txt"], 2, "the list has no image"],
  [["one:1", "none:1"], 1, "has no image none:1"],
  [["one:1", "-n", "0"], 2, "--limit"],
] as const)("bough layers %p exits with %p", async (words, code, message) => {
  const { exitCode, stdout, stderr } = await bough("layers", ...words);
  expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: "" });
  expect(stderr).toContain(message);
});

test("a table of two million files of 100 layers takes less than 100 MB", () => {
  const used = () => {
    Bun.gc(true);
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const table = createFileTable();
  function* files(layer: number) {
    // A tenth is in all layers.
    for (let file = 0; file < 20_000; file += 1) {
      const low = file % 10 === 0 ? file : file + (layer + 1) * 20_000;
      yield { high: Math.imul(low, 0x9e3779b1) >>> 0, low, size: 10 };
    }
  }
  for (let layer = 0; layer < 100; layer += 1) table.add(layer, files(layer));
  expect(used() - before).toBeLessThan(100_000_000);
  const all = Array.from({ length: 100 }, (_, layer) => layer);
  expect(table.shared()).toMatchObject([{ layers: all, files: 2000, bytes: 20_000 }]);
});
