import { afterEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { openBuildContext } from "../../src/context/build-context.ts";
import { localFileSystem } from "../../src/context/file-system/file-system.ts";
import { hashFiles } from "../../src/context/hashing/hash.ts";
import { type HashCache, isSameStat, isSettled } from "../../src/context/hashing/hash-file.ts";
import { ignoreRules } from "../../src/context/patterns/ignore.ts";
import type { FileEntry, FileStat } from "../../src/context/sources/entry.ts";
import { resolveSources } from "../../src/context/sources/sources.ts";
import { BoughError } from "../../src/errors.ts";
import { makeTree, removeTrees } from "./make-tree.ts";

afterEach(removeTrees);

const noRules = ignoreRules([], { defaultExcludes: false });

async function fileEntries(root: string): Promise<FileEntry[]> {
  const context = await openBuildContext(root, "/");
  const { matches } = await resolveSources({
    context,
    files: localFileSystem,
    ignore: noRules,
    sources: ["."],
  });
  return matches.flatMap(({ entries }) => [...entries].filter((entry) => entry.type === "file"));
}

async function fileEntry(root: string): Promise<FileEntry> {
  const [entry] = await fileEntries(root);
  if (entry === undefined) throw new Error("the tree has no file");
  return entry;
}

function sha256(content: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}

test("a file's hash is that of its bytes, for any size", async () => {
  const root = makeTree("empty\nsmall");
  const mebibyte = 1024 * 1024;
  for (const size of [0, 1, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte + 7])
    writeFileSync(join(root, String(size)), Buffer.alloc(size, "bough"));
  const entries = await fileEntries(root);
  const hashes = await hashFiles(entries);
  for (const entry of entries) {
    const content = await Bun.file(entry.absolutePath).bytes();
    expect([entry.contextPath, hashes.get(entry.absolutePath)]).toEqual([entry.contextPath, sha256(content)]);
  }
});

const big = Buffer.alloc(2 * 1024 * 1024, "x");

/** Changes of a file between the walk and the reading, and the errors. */
const changes: [string, (path: string) => void, string][] = [
  ["grows", (path) => appendFileSync(path, "more"), "changed while the build read it"],
  ["shrinks", (path) => truncateSync(path, 1), "changed while the build read it"],
  ["is emptied", (path) => truncateSync(path, 0), "changed while the build read it"],
  ["vanishes", (path) => rmSync(path), "vanished while the build read it"],
  ["gets another mode", (path) => chmodSync(path, 0o600), "changed while the build read it"],
  [
    "is written again",
    (path) => writeFileSync(path, "a".repeat(statSync(path).size)),
    "changed while the build read it",
  ],
  [
    "is replaced by a file of the same size and time",
    (path) => {
      const { atime, mtime } = statSync(path);
      copyFileSync(path, `${path}.new`);
      utimesSync(`${path}.new`, atime, mtime);
      renameSync(`${path}.new`, path);
    },
    "changed while the build read it",
  ],
  [
    "becomes a link to an equal file",
    (path) => {
      renameSync(path, `${path}.real`);
      symlinkSync(`${path}.real`, path);
    },
    "changed while the build read it",
  ],
  [
    "is reached through a link in place of its directory",
    (path) => {
      const directory = dirname(path);
      renameSync(directory, `${directory}.elsewhere`);
      symlinkSync(`${directory}.elsewhere`, directory);
    },
    "changed while the build read it",
  ],
  [
    "becomes a pipe without a writer",
    (path) => {
      rmSync(path);
      Bun.spawnSync(["mkfifo", path]);
    },
    "changed while the build read it",
  ],
  [
    "becomes a directory",
    (path) => {
      rmSync(path);
      Bun.spawnSync(["mkdir", path]);
    },
    "changed while the build read it",
  ],
];

for (const [what, change, message] of changes) {
  for (const [size, content] of [
    ["small", "hello"],
    ["large", big],
  ] as const) {
    test(`a ${size} file that ${what} after the walk is an error`, async () => {
      const root = makeTree("d/f");
      writeFileSync(join(root, "d", "f"), content);
      const entry = await fileEntry(root);
      change(entry.absolutePath);
      await expect(hashFiles([entry])).rejects.toThrow(`d/f ${message}`);
    });
  }
}

test("a file without read permission is an error with its path", async () => {
  const root = makeTree("secret 0000");
  chmodSync(root, 0o755);
  const entry = await fileEntry(root);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65534);
  try {
    await expect(hashFiles([entry])).rejects.toThrow("cannot read secret: permission denied");
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});

test("reading a file leaves its access time", async () => {
  const root = makeTree("f");
  const path = join(root, "f");
  const changed = Date.now() / 1000;
  utimesSync(path, changed - 3600, changed);
  const { atimeMs } = statSync(path);
  await hashFiles([await fileEntry(root)]);
  expect(statSync(path).atimeMs).toBe(atimeMs);
});

test("a file of another owner is read, though its access time changes", async () => {
  const root = makeTree("f 0644");
  writeFileSync(join(root, "f"), "hello");
  chmodSync(root, 0o755);
  const entry = await fileEntry(root);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65534);
  try {
    expect([...(await hashFiles([entry])).values()]).toEqual([sha256("hello")]);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});

class MapCache implements HashCache {
  readonly entries = new Map<string, { stat: FileStat; sha256: string }>();
  get(path: string, stat: FileStat): string | undefined {
    const entry = this.entries.get(path);
    return entry !== undefined && isSameStat(entry.stat, stat) ? entry.sha256 : undefined;
  }
  set(path: string, stat: FileStat, sha256: string): void {
    this.entries.set(path, { stat, sha256 });
  }
}

const inAnHour = { now: () => Date.now() + 3_600_000 };

test("with a cache, a file that has not changed is not read again", async () => {
  const root = makeTree("a\nb");
  const cache = new MapCache();
  const hashes = await hashFiles(await fileEntries(root), { cache, clock: inAnHour });
  const again = await fileEntries(root);
  // The files are gone, so only the cache has their hashes.
  rmSync(root, { recursive: true });
  expect(await hashFiles(again, { cache, clock: inAnHour })).toEqual(hashes);
});

test("a file replaced by one of the same size and modification time is read again", async () => {
  const root = makeTree("f");
  const path = join(root, "f");
  writeFileSync(path, "old!");
  utimesSync(path, 1, 1);
  const cache = new MapCache();
  await hashFiles([await fileEntry(root)], { cache, clock: inAnHour });
  writeFileSync(join(root, "g"), "new!");
  utimesSync(join(root, "g"), 1, 1);
  renameSync(join(root, "g"), path);
  const hashes = await hashFiles([await fileEntry(root)], { cache, clock: inAnHour });
  expect([...hashes.values()]).toEqual([sha256("new!")]);
});

test("a file that has just changed is not cached, because its next change might not change its state", async () => {
  const root = makeTree("f");
  const entry = await fileEntry(root);
  const cache = new MapCache();
  const changedAt = Math.floor(entry.stat.ctimeMs);
  await hashFiles([entry], { cache, clock: { now: () => changedAt + 5 } });
  expect(cache.entries.size).toBe(0);
});

test.each([
  ["settled if it changed long ago", 1_000_000_000.123, 2_000_000_000_000, true],
  ["not settled if it changed an instant ago", 1_000.123, 1_000_124, false],
  ["settled if it changed more than a tick ago", 1_000.123, 1_000_324, true],
  ["not settled if it changed in the future", 2_000.5, 1_000_000, false],
  ["not settled if it changed a second ago and times are whole seconds", 1_000, 1_001_000, false],
  ["settled if it changed four seconds ago and times are whole seconds", 1_000, 1_004_001, true],
])("a file's state is %s", (_, changedSeconds, readAt, expected) => {
  const changed = Math.round(changedSeconds * 1000);
  const stat = { device: 1, inode: 1, size: 1, mtimeMs: changed, ctimeMs: changed };
  expect(isSettled(stat, readAt)).toBe(expected);
});

test("hashing ends with the signal's reason", async () => {
  const root = makeTree("f");
  const entry = await fileEntry(root);
  await expect(hashFiles([entry], { signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow(
    "enough",
  );
});

describe("several large files, hashed on threads,", () => {
  const sizes = { a: 70_000_001, b: 80_000_000, c: 20_000_000, d: 5 };

  async function makeLargeFiles(): Promise<FileEntry[]> {
    const root = makeTree(Object.keys(sizes).join("\n"));
    for (const [name, size] of Object.entries(sizes)) {
      writeFileSync(join(root, name), name);
      truncateSync(join(root, name), size);
    }
    return fileEntries(root);
  }

  test("have the hashes of their bytes, and are cached", async () => {
    const entries = await makeLargeFiles();
    const remembered = new Map<string, string>();
    const cache: HashCache = {
      get: () => undefined,
      set: (path, _, hash) => void remembered.set(path, hash),
    };
    const progress: number[] = [];
    const onProgress = ({ bytes }: { bytes: number }) => void progress.push(bytes);
    const clock = { now: () => Date.now() + 3_600_000 };
    const hashes = await hashFiles(entries, { cache, clock, onProgress });
    for (const { absolutePath } of entries)
      expect(hashes.get(absolutePath)).toBe(sha256(await Bun.file(absolutePath).bytes()));
    expect(remembered).toEqual(new Map(hashes));
    expect(progress.at(-1)).toBe(Object.values(sizes).reduce((sum, size) => sum + size));
  });

  test("fail together if one of them changes", async () => {
    const entries = await makeLargeFiles();
    appendFileSync(entries[2]?.absolutePath ?? "", "more");
    const error = await hashFiles(entries).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BoughError);
    expect(error).toMatchObject({
      message: "c changed while the build read it",
      hint: expect.stringContaining("Build again"),
    });
  });

  test("end with the signal's reason", async () => {
    const entries = await makeLargeFiles();
    const stop = new AbortController();
    const onProgress = () => stop.abort(new Error("enough"));
    await expect(hashFiles(entries, { signal: stop.signal, onProgress })).rejects.toThrow("enough");
  });
});
