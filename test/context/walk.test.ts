import { afterEach, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { openBuildContext } from "../../src/context/build-context.ts";
import { type FileSystem, localFileSystem } from "../../src/context/file-system/file-system.ts";
import { type IgnoreRules, ignoreRules, parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import { resolveSources } from "../../src/context/sources/sources.ts";
import { makeTree, removeTrees } from "./make-tree.ts";

afterEach(removeTrees);

const noRules = ignoreRules([], { defaultExcludes: false });

function rules(...lines: string[]): IgnoreRules {
  return ignoreRules(parseIgnoreFile(lines.join("\n"), ".dockerignore"), { defaultExcludes: true });
}

/** Resolves sources; returns their paths, and the directories and files that were read, relative to the context. */
async function record(root: string, ignore: IgnoreRules, sources: string[], parents = false) {
  const context = await openBuildContext(root, "/");
  const read: string[] = [];
  const stated: string[] = [];
  const below = (path: string) => path.slice(context.realPath.length + 1) || ".";
  const files: FileSystem = {
    ...localFileSystem,
    readDirectory(path) {
      read.push(below(path));
      return localFileSystem.readDirectory(path);
    },
    stat(path) {
      stated.push(below(path));
      return localFileSystem.stat(path);
    },
  };
  const { matches } = await resolveSources({ context, ignore, sources, parents, files });
  return {
    read,
    stated,
    paths: matches.flatMap(({ entries }) => [...entries].map((entry) => entry.contextPath)),
  };
}

test("an ignored directory is not read, and its entries are not examined", async () => {
  const root = makeTree("src/main.ts\nnode_modules/a/b/c.js\nlogs/2024/today.log\nout.log");
  const { read, stated } = await record(root, rules("logs", "*.log"), ["."]);
  expect(read).toEqual([".", "src"]);
  expect(stated.filter((path) => /log|node_modules/.test(path))).toEqual([]);
});

test("an ignored directory is read only as far as a `!` rule can match in it", async () => {
  const root = makeTree("data/keep/x\ndata/drop/y\ndata/drop/keep/z\ndata/big/a/b/c\nother/keep/x");
  expect(await record(root, rules("*", "!data/keep"), ["."])).toMatchObject({
    read: [".", "data", "data/keep"],
    paths: ["", "data", "data/keep", "data/keep/x"],
  });
  expect((await record(root, rules("data", "!data/*/keep"), ["."])).read).toEqual([
    ...[".", "data", "data/big", "data/drop", "data/drop/keep", "data/keep", "other", "other/keep"],
  ]);
});

test("a directory is not read if a rule after the `!` rule ignores it again", async () => {
  const root = makeTree("data/keep/x\na");
  expect((await record(root, rules("data", "!data/keep", "data"), ["."])).read).toEqual(["."]);
});

test("patterns read only directories in which they can match", async () => {
  const root = makeTree("src/a/x.js\nsrc/b/deep/x.js\nlib/a/x.js");
  expect((await record(root, noRules, ["src/*/x.js"])).read).toEqual(["src", "src/a", "src/b"]);
  expect((await record(root, noRules, ["src/*/x.js"], true)).read).toEqual([".", "src", "src/a", "src/b"]);
  expect((await record(root, noRules, ["lib/a/x.js"])).read).toEqual([]);
});

test("an unreadable directory is an error with its path", async () => {
  const root = makeTree("open/file\nclosed/file");
  chmodSync(join(root, "closed"), 0);
  await asOrdinaryUser(root, async () => {
    await expect(record(root, noRules, ["."])).rejects.toThrow(
      "cannot read the directory closed: permission denied",
    );
    await expect(record(root, noRules, ["closed/file"])).rejects.toThrow(
      "cannot read closed/file: permission denied",
    );
    expect((await record(root, rules("closed"), ["."])).paths).toEqual(["", "open", "open/file"]);
  });
  chmodSync(join(root, "closed"), 0o755);
});

/** Runs as an ordinary user, because root may read everything. */
async function asOrdinaryUser(root: string, run: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await run();
  chmodSync(root, 0o755);
  process.seteuid?.(65534);
  try {
    await run();
  } finally {
    process.seteuid?.(0);
  }
}

test("a file that vanishes while the context is read is an error with its path", async () => {
  const root = makeTree("a\nb");
  const context = await openBuildContext(root, "/");
  const files: FileSystem = {
    ...localFileSystem,
    readDirectory(path) {
      const names = localFileSystem.readDirectory(path);
      rmSync(join(root, "b"));
      return names;
    },
  };
  await expect(resolveSources({ context, ignore: noRules, sources: ["."], files })).rejects.toThrow(
    "b vanished while the build read it",
  );
});

test.each<[string, string, keyof FileSystem, string]>([
  ["a directory", "sub/a\nsub/b", "readDirectory", "sub"],
  ["the directory of a link", "sub/link -> target", "readLink", "sub/link"],
])("%s that is replaced by a link while the context is read is an error", async (_, tree, call, path) => {
  const root = makeTree(tree);
  const context = await openBuildContext(root, "/");
  const sub = join(context.realPath, "sub");
  const swapBefore = <Name extends "readDirectory" | "stat" | "readLink">(name: Name): FileSystem[Name] =>
    ((asked: string) => {
      if (name === call && asked === join(context.realPath, path)) {
        renameSync(sub, `${sub}.elsewhere`);
        symlinkSync(`${sub}.elsewhere`, sub);
      }
      return localFileSystem[name](asked);
    }) as FileSystem[Name];
  const files = {
    readDirectory: swapBefore("readDirectory"),
    stat: swapBefore("stat"),
    readLink: swapBefore("readLink"),
  };
  await expect(resolveSources({ context, ignore: noRules, sources: ["."], files })).rejects.toThrow(
    `${path} changed while the build read it`,
  );
});

test.each([
  [["."], "cannot copy d/caf\\xe9: its name is not valid UTF-8"],
  [["d"], "cannot copy d/caf\\xe9: its name is not valid UTF-8"],
  [["d/caf*"], "cannot copy d/caf\\xe9: its name is not valid UTF-8"],
  [["l"], "cannot copy the link l/link: its target caf\\xe9 is not valid UTF-8"],
])("a name or target that is not UTF-8 is an error that shows it: %j", async (sources, message) => {
  const root = makeTree("d/a\nl/a");
  const name = Buffer.from([0x63, 0x61, 0x66, 0xe9]);
  writeFileSync(Buffer.concat([Buffer.from(`${root}/d/`), name]), "");
  symlinkSync(name, join(root, "l/link"));
  await expect(record(root, noRules, sources)).rejects.toThrow(message);
});

test("hard links are separate files, and sockets are left out", async () => {
  const root = makeTree("d/one");
  Bun.spawnSync(["ln", join(root, "d/one"), join(root, "d/two")]);
  const server = createServer().listen(join(root, "d/socket"));
  await new Promise((resolve) => server.once("listening", resolve));
  const context = await openBuildContext(root, "/");
  const { matches, warnings } = await resolveSources({
    context,
    files: localFileSystem,
    ignore: noRules,
    sources: ["d"],
  });
  server.close();
  expect([...(matches[0]?.entries ?? [])].map(({ type, relativePath }) => `${type} ${relativePath}`)).toEqual(
    [...["directory ", "file one", "file two"]],
  );
  expect(warnings).toEqual([
    {
      rule: "SpecialFileLeftOut",
      subject: "socket",
      message: "sockets can't be copied and are left out: d/socket",
    },
  ]);
});

test("special files are kept where they can be copied, each as what it is; the reason is given for others", async () => {
  const root = makeTree("d/pipe |");
  for (const words of ["block b 7 300", "character c 1 3"])
    Bun.spawnSync(["mknod", ...words.split(" ")], { cwd: join(root, "d") });
  const find = async (isKept: boolean) =>
    resolveSources({
      context: await openBuildContext(root, "/"),
      files: localFileSystem,
      ignore: noRules,
      sources: ["d"],
      whyLeftOut: async ({ kind }) => (isKept || kind === "pipe" ? undefined : "only root can make them"),
    });
  const kept = await find(true);
  const entries = kept.matches[0]?.entries;
  expect([...(entries ?? [])].slice(1)).toMatchObject([
    { type: "special", special: { kind: "block-device", major: 7, minor: 300 } },
    { type: "special", special: { kind: "character-device", major: 1, minor: 3 } },
    { type: "special", special: { kind: "pipe" } },
  ]);
  expect([entries?.files, entries?.bytes, kept.warnings]).toEqual([0, 0, []]);
  const { matches, warnings } = await find(false);
  expect(matches[0]?.entries.length).toBe(2);
  expect(warnings.map(({ message }) => message)).toEqual([
    "devices are left out, unlike in Docker, as only root can make them: d/block, d/character",
  ]);
});

test("a file's state is kept in fractions of milliseconds", async () => {
  const root = makeTree("a");
  const context = await openBuildContext(root, "/");
  const { matches } = await resolveSources({
    context,
    files: localFileSystem,
    ignore: noRules,
    sources: ["a"],
  });
  const { dev, ino, size, mtimeMs, ctimeMs } = lstatSync(join(root, "a"));
  expect(matches[0]?.entries.at(0)).toMatchObject({
    stat: { device: dev, inode: ino, size, mtimeMs, ctimeMs },
  });
});

test("names too long for the system count as missing", async () => {
  const root = makeTree("a");
  mkdirSync(join(root, "d"));
  await expect(record(root, noRules, ["x".repeat(300)])).rejects.toThrow("no such file or directory");
  await expect(record(root, noRules, [`d/${"y/".repeat(3000)}z`])).rejects.toThrow(
    "no such file or directory",
  );
});

test("an endless walk pauses for other work and ends with the signal's reason", async () => {
  const root = makeTree("d/");
  const context = await openBuildContext(root, "/");
  const files: FileSystem = {
    readDirectory: () => Array.from({ length: 1000 }, (_, index) => `n${index}`),
    stat: () => localFileSystem.stat(root),
    readLink: localFileSystem.readLink,
  };
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 1);
  const { signal } = controller;
  await expect(resolveSources({ context, ignore: noRules, sources: ["d"], files, signal })).rejects.toThrow(
    "enough",
  );
});

test("hostile patterns take bounded time", async () => {
  const names = ["a".repeat(250), ...Array.from({ length: 15 }, () => "a".repeat(200))];
  const root = makeTree(names.join("/"));
  const patterns = [
    ..."*a,**/a/,**/*/,a**,*[^b],[^b]*a,*?,?*".split(",").map((part) => `${part.repeat(60)}b`),
    ...["*".repeat(4000), "**/".repeat(1000)].map((part) => `${part}b`),
  ];
  const { paths } = await record(root, rules(...patterns), ["."]);
  expect(paths).toHaveLength(names.length + 1);
});
