import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLinker } from "../../../src/engine/copies/linker.ts";
import { createPace } from "../../../src/pace.ts";

/** Enough for threads to take part. */
const count = 8_000;

const directory = mkdtempSync(join(tmpdir(), "bough-linker-"));
/** On a file system of its own, so that links to it are refused. */
const elsewhere = mkdtempSync("/dev/shm/bough-linker-");
afterAll(() => {
  for (const each of [directory, elsewhere]) rmSync(each, { recursive: true });
});

const here = join(directory, "file");
const far = join(elsewhere, "file");
for (const file of [here, far]) writeFileSync(file, "content");

function targetIn(name: string): string {
  const target = join(directory, name);
  mkdirSync(target);
  return target;
}

test("what the file system refuses to link is copied, once", async () => {
  const target = targetIn("refused");
  const copied: string[] = [];
  await using linker = createLinker(createPace(undefined));
  for (let index = 0; index < count; index++) {
    const name = String(index);
    const copy = async () => {
      copied.push(name);
    };
    await linker.link(index % 3 === 0 ? far : here, join(target, name), copy);
  }
  await linker.drain();
  const linked = readdirSync(target);
  expect(linked.length + copied.length).toBe(count);
  expect(new Set([...linked, ...copied]).size).toBe(count);
  expect(copied.every((name) => Number(name) % 3 === 0)).toBe(true);
  expect(statSync(here).nlink).toBe(linked.length + 1);
});

test.each([10, count - 10])("an error of link %d is reported", async (broken) => {
  const target = targetIn(`broken-${broken}`);
  await using linker = createLinker(createPace(undefined));
  const linking = async () => {
    for (let index = 0; index < count; index++) {
      const existing = index === broken ? join(here, "not in a directory") : here;
      await linker.link(existing, join(target, String(index)), () => undefined);
    }
    await linker.drain();
  };
  // `rejects` would take seconds: it slows down the event loop.
  expect(await linking().catch((error: unknown) => error)).toMatchObject({ code: "ENOTDIR" });
});

test("nothing is linked after an abort", async () => {
  const target = targetIn("aborted");
  const abort = new AbortController();
  const linking = async () => {
    await using linker = createLinker(createPace(abort.signal));
    for (let index = 0; ; index++) {
      if (index === count) abort.abort(new Error("stopped"));
      await linker.link(here, join(target, String(index)), () => undefined);
    }
  };
  expect(await linking().catch((error: unknown) => error)).toMatchObject({ message: "stopped" });
  const linked = readdirSync(target).length;
  expect(linked).toBeGreaterThan(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(readdirSync(target)).toHaveLength(linked);
});
