/** Copies of large files that the engine makes while they are hashed, before an operation names them. */
import { beforeEach, describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openToHash } from "../../src/context/hashing/hash-file.ts";
import { fileStatOf } from "../../src/context/sources/entry-of.ts";
import { openDatabase } from "../../src/database.ts";
import { migrations } from "../../src/engine/records/schema.ts";
import { noteFailedSync } from "../../src/engine/records/unsynced-layers.ts";
import type { LentFile } from "../../src/service/wire/file.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine({});
/** More than two of the chunks that are copied at once, and a part of one. */
const content = Buffer.alloc(2_500_000, "0123456789abcdef\n");
const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");

let path: string;
beforeEach(() => {
  path = join(temporaryDirectory(), "large");
  writeFileSync(path, content);
});

function copy(onBytes: (bytes: number) => void = () => {}, signal = new AbortController().signal) {
  const stats = statSync(path);
  const file = { absolutePath: path, contextPath: "large", size: stats.size, stat: fileStatOf(stats) };
  const copying = engine.engine.copyAhead?.(
    { size: stats.size, open: () => openToHash(file) },
    { signal, onBytes },
  );
  if (copying === undefined) throw new Error("this engine is elsewhere");
  return copying;
}

function lend(destination: string, attributes: Partial<LentFile> = {}): LentFile {
  const file = { destination, path, sha256, size: content.length, uid: 0, gid: 0, mode: 0o644 };
  return { ...file, mtime: undefined, ...attributes, path };
}

/** The files in the engine's scratch directory. */
function scratch(): string[] {
  const directory = join(engine.directory, "scratch");
  return readdirSync(directory).flatMap((name) => readdirSync(join(directory, name)));
}

async function run(files: LentFile[], command: string) {
  const { stdout, operation } = await engine.runWith(base, files, command);
  return operation.error ?? stdout.trimEnd();
}

const changed = (destination: string) =>
  `cannot put a file at ${destination}: ${path} changed while it was being read. Build again when nothing writes to it any more.`;

test("a copy becomes the file of a layer, with its owner, mode and time, and the original is not read again", async () => {
  let read = 0;
  const made = await copy((bytes) => {
    read += bytes;
  });
  expect([made.sha256, read, scratch()]).toEqual([sha256, content.length, [expect.any(String)]]);
  writeFileSync(path, "something else");
  const file = lend("/a/large", { uid: 7, gid: 8, mode: 0o4751, mtime: 1_000_000_000, links: ["/b/link"] });
  const command = "stat -c '%a %u:%g %Y %s %h' /a/large; sha256sum < /b/link; echo more >> /a/large";
  expect(await run([file], command)).toBe(`4751 7:8 1000000000 2500000 2\n${sha256}  -`);
  expect(scratch()).toEqual([]);
});

test("a copy is used once: further files with the same bytes are copied from the original", async () => {
  await copy();
  expect(await run([lend("/one"), lend("/two")], "rm /one; sha256sum < /two")).toBe(`${sha256}  -`);
  await copy();
  rmSync(path);
  expect(await run([lend("/one"), lend("/two")], "true")).toBe(changed("/two"));
});

test("a copy replaces what the image has at its place, but no directory", async () => {
  await copy();
  rmSync(path);
  expect(await run([lend("/bin/vi")], "sha256sum < /bin/vi")).toBe(`${sha256}  -`);
  writeFileSync(path, content);
  const made = await copy();
  expect(await run([lend("/bin")], "true")).toBe(
    "cannot put a file at /bin: there is a directory in the image",
  );
  made.drop();
  expect(scratch()).toEqual([]);
});

test("two copies of the same bytes are one", async () => {
  const [first, second] = [await copy(), await copy()];
  expect(scratch()).toHaveLength(1);
  second.drop();
  expect(scratch()).toHaveLength(1);
  first.drop();
  expect(scratch()).toEqual([]);
});

test("a copy that nothing needs is dropped, and dropping it again does no harm", async () => {
  const made = await copy();
  made.drop();
  const other = await copy();
  made.drop();
  expect(scratch()).toHaveLength(1);
  other.drop();
});

describe("nothing stays of a copy", () => {
  test("if the file changes while it is read", async () => {
    const copying = copy(() => appendFileSync(path, "more"));
    await expect(copying).rejects.toThrow("large changed while the build read it");
    expect(scratch()).toEqual([]);
  });

  test("that is aborted", async () => {
    const stopping = new AbortController();
    stopping.abort(new Error("stopped"));
    await expect(copy(undefined, stopping.signal)).rejects.toThrow("stopped");
    expect(scratch()).toEqual([]);
  });

  test("if a sync to the disk failed afterwards: the file is copied again", async () => {
    await copy();
    // Otherwise the image would be lost, too.
    await engine.engine.settle?.(base);
    writeFileSync(path, Buffer.alloc(content.length));
    const database = openDatabase(join(engine.directory, "engine.db"), migrations);
    noteFailedSync(database, { layers: [], startedAt: Date.now() });
    database.close();
    expect(await run([lend("/large")], "true")).toBe(changed("/large"));
    expect(scratch()).toEqual([]);
  });
});

test("a file that can't be copied is hashed all the same", async () => {
  const directory = join(engine.directory, "scratch");
  const [own = ""] = readdirSync(directory);
  rmSync(join(directory, own), { recursive: true });
  const made = await copy();
  made.drop();
  mkdirSync(join(directory, own), { mode: 0o700 });
  expect(made.sha256).toBe(sha256);
  rmSync(path);
  expect(await run([lend("/large")], "true")).toBe(changed("/large"));
});
