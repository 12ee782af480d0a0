import { beforeEach, describe, expect, test } from "bun:test";
import { lstatSync } from "node:fs";
import { join, relative } from "node:path";
import { dialects } from "../../src/builder/dialect.ts";
import { createSourcePrefetch } from "../../src/builder/stages/source-prefetch.ts";
import { type Clock, systemClock } from "../../src/clock.ts";
import { openBuildContext } from "../../src/context/build-context.ts";
import { localFileSystem } from "../../src/context/file-system/file-system.ts";
import { ignoreRules } from "../../src/context/patterns/ignore.ts";
import { fileStatOf } from "../../src/context/sources/entry-of.ts";
import type { AddInstruction, CopyInstruction } from "../../src/dockerfile/instruction.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { openStore } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

/** The hash of file `a`. */
const sha256 = new Bun.CryptoHasher("sha256").update("a").digest("hex");
let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
  writeFiles(directory, { a: "a", b: "b", "c/d": "d" });
});

async function prefetchSources(text: string, clock: Clock = systemClock) {
  const dockerfile = parseDockerfile(text, "Dockerfile");
  const store = openStore(join(temporaryDirectory(), "state.db"), systemClock);
  const hashes = store.hashes.open(directory);
  const offered: string[] = [];
  const prefetch = createSourcePrefetch({
    dialect: dialects.default,
    dockerfile,
    context: await openBuildContext(directory, "/"),
    files: localFileSystem,
    ignore: ignoreRules([], { defaultExcludes: true }),
    hashes,
    fileStates: store.fileStates.open(directory),
    eagerUploads: {
      contents: undefined,
      offer: ({ absolutePath }) => void offered.push(relative(directory, absolutePath)),
      hashWhileSending: async () => undefined,
    },
    clock,
    signal: new AbortController().signal,
  });
  prefetch.begin(1);
  const copies = dockerfile.instructions.filter(
    (each): each is CopyInstruction | AddInstruction => each.name === "COPY" || each.name === "ADD",
  );
  return { prefetch, copies, hashes, offered };
}

const ignoreProgress = () => undefined;

test("the sources of the COPYs up to the next RUN are resolved, hashed and offered for sending, each once", async () => {
  const { prefetch, copies, offered } = await prefetchSources(
    "FROM x\nWORKDIR /\nCOPY a /\nENV A=1\nADD c /c\nRUN x\nCOPY b /\n",
  );
  const [first, second, third] = copies.map((copy) => prefetch.take(copy));
  const found = await first;
  expect(await found?.hashes(ignoreProgress)).toBeDefined();
  const entries = found?.sources?.matches[0]?.entries;
  expect([...(entries ?? [])]).toMatchObject([{ contextPath: "a" }]);
  expect(entries?.hashAt(0)).toBe(sha256);
  expect(
    [...((await second)?.sources?.matches[0]?.entries ?? [])].map(({ contextPath }) => contextPath),
  ).toEqual(["c", "c/d"]);
  await (await second)?.hashes(ignoreProgress);
  expect(offered).toEqual(["a", "c/d"]);
  expect(await third).toBeUndefined();
  expect(await Promise.all(copies.map((copy) => prefetch.take(copy)))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

describe("does not prefetch", () => {
  test.each([
    ["words with variables", "COPY $A /"],
    ["a destination with variables", "COPY a $A"],
    ["URLs", "ADD http://127.0.0.1:1/a /"],
    ["other stages", "COPY --from=x a /"],
    ["here-documents", "COPY <<END /a\nEND"],
  ])("%s", async (_, line) => {
    const { prefetch, copies } = await prefetchSources(`FROM x\n${line}\n`);
    expect(await Promise.all(copies.map((copy) => prefetch.take(copy)))).toEqual([undefined]);
  });
});

test("an error is thrown when the COPY is taken", async () => {
  const { prefetch, copies } = await prefetchSources("FROM x\nCOPY missing /\nCOPY a /\n");
  const [first, second] = copies.map((copy) => prefetch.take(copy));
  await expect(first).rejects.toThrow("missing");
  expect(await (await second)?.hashes(ignoreProgress)).toBeDefined();
});

test("waiting for the hashes reports progress", async () => {
  writeFiles(directory, { large: "x".repeat(64 * 1024 * 1024) });
  const { prefetch, copies } = await prefetchSources("FROM x\nCOPY large /\n");
  const [taken] = await Promise.all(copies.map((copy) => prefetch.take(copy)));
  let heard = 0;
  await taken?.hashes(({ bytes }) => {
    heard = bytes;
  });
  expect(heard).toBeGreaterThan(0);
});

test("a COPY taken after the stop is rejected", async () => {
  const { prefetch, copies } = await prefetchSources("FROM x\nCOPY . /\n");
  const taken = copies.map((copy) => prefetch.take(copy))[0];
  await prefetch.stop();
  await expect(taken).rejects.toThrow();
});

test("sources resolved two seconds ago are resolved again, with the hashes kept", async () => {
  let now = Date.now() + 60_000;
  const { prefetch, copies, hashes } = await prefetchSources("FROM x\nCOPY a /\n", {
    ...systemClock,
    now: () => now,
  });
  now += 2000;
  const [taken] = await Promise.all(copies.map((copy) => prefetch.take(copy)));
  expect(taken?.sources).toBeUndefined();
  expect(await taken?.hashes(ignoreProgress)).toBeUndefined();
  const path = join(directory, "a");
  const stat = fileStatOf(lstatSync(path));
  expect(hashes.get(path, stat)).toBe(sha256);
});

test("at most 20 of 1000 COPYs are prefetched, and taking one starts the next", async () => {
  const count = 1000;
  const lines = Array.from({ length: count }, (_, index) => `COPY a /${index}`);
  const { prefetch, copies, offered } = await prefetchSources(`FROM x\n${lines.join("\n")}\n`);
  for (const [index, copy] of copies.entries()) {
    const found = await prefetch.take(copy);
    expect(await found?.hashes(ignoreProgress)).toBeDefined();
    expect(offered.length).toBeLessThanOrEqual(index + 20);
  }
  expect(offered).toHaveLength(count);
});
