import { expect, test } from "bun:test";
import { parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import { decidePath, isMatch } from "../../src/context/patterns/rules.ts";
import type { ContextEntry, FileEntry } from "../../src/context/sources/entry.ts";
import { EntryList, type SourceMatch } from "../../src/context/sources/entry-list.ts";
import { findLargeContext } from "../../src/context/sources/large-context.ts";

const mebibyte = 1024 * 1024;
const noStat = { device: 0, inode: 0, size: 0, mtimeMs: 0, ctimeMs: 0 };

function file(path: string, size: number): FileEntry {
  return {
    type: "file",
    contextPath: path,
    absolutePath: `/${path}`,
    relativePath: path,
    mode: 0,
    size,
    stat: noStat,
  };
}

function directory(source: string, files: Record<string, number>): SourceMatch {
  const top: ContextEntry = {
    type: "directory",
    contextPath: source,
    absolutePath: `/${source}`,
    relativePath: "",
    mode: 0o755,
    mtimeMs: 0,
  };
  return {
    source,
    isDirectory: true,
    entries: EntryList.of(top, ...Object.entries(files).map(([path, size]) => file(path, size))),
  };
}

function many(prefix: string, count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 1]));
}

function rulesOf(matches: SourceMatch[]) {
  return findLargeContext(matches)?.largest.map(({ rule }) => rule);
}

test("a small context causes no warning", () => {
  expect(
    findLargeContext([directory("", { "src/a": 100 * mebibyte, ...many("src/", 1000) })]),
  ).toBeUndefined();
});

test("the warning has the five largest paths, the largest first", () => {
  const sizes = { "a/x": 50, "b/x": 10, "b/y": 10, c: 30, "d/x": 5, "e/x": 6, "f/x": 1, g: 100 };
  const files = Object.fromEntries(Object.entries(sizes).map(([path, size]) => [path, size * mebibyte]));
  const found = findLargeContext([directory("", files)]);
  expect(found).toMatchObject({ files: 8, bytes: 212 * mebibyte });
  expect(found?.largest.slice(0, 3)).toEqual([
    { path: "g", rule: "g", files: 1, bytes: 100 * mebibyte },
    { path: "a/x", rule: "a/x", files: 1, bytes: 50 * mebibyte },
    { path: "c", rule: "c", files: 1, bytes: 30 * mebibyte },
  ]);
  expect(found?.largest.map(({ rule }) => rule)).toEqual(["g", "a/x", "c", "b/", "e/x"]);
});

test("a directory of 20,000 small files counts as large", () => {
  const files = { ...many("cache/v1/objects/", 20_000), ...many("src/", 300), "src/big": mebibyte };
  expect(rulesOf([directory("", files)])).toEqual(["cache/v1/objects/", "src/"]);
});

test("the rules are for paths in a source directory, not for the directory itself", () => {
  const files = { "data/models/a": 150 * mebibyte, "data/models/b": 100 * mebibyte, "data/notes": 1 };
  expect(rulesOf([directory("data", files)])).toEqual(["data/models/"]);
});

test("paths that are tiny compared with the largest get no rule", () => {
  const files = { "data/a": 150 * mebibyte, "data/b": 100 * mebibyte, Dockerfile: 35 };
  expect(rulesOf([directory("", files)])).toEqual(["data/"]);
  // Directories of equal size are all as large as the largest.
  const alike = Object.fromEntries(Array.from({ length: 20_001 }, (_, index) => [`d${index}/x`, 1]));
  expect(rulesOf([directory("", alike)])).toHaveLength(5);
});

test("a file matched by a pattern gets a rule, but not a file that the Dockerfile names", () => {
  const big = file("a/disk.img", 500 * mebibyte);
  expect(
    findLargeContext([{ source: "a/disk.img", isDirectory: false, entries: EntryList.of(big) }]),
  ).toBeUndefined();
  expect(rulesOf([{ source: "a/*", isDirectory: false, entries: EntryList.of(big) }])).toEqual([
    "a/disk.img",
  ]);
});

test.each([
  "plain",
  "a b",
  "#notes",
  "!important",
  "[x]*?",
  "back\\slash",
  " ends ",
  "日本",
  "a/#b",
  "line\nend",
  "esc\u001b[2J",
])("the suggested rule for %j ignores that path", (path) => {
  const [rule = ""] = rulesOf([directory("", { [path]: 300 * mebibyte, other: 1 })]) ?? [];
  const rules = parseIgnoreFile(`${rule}\n`, ".dockerignore");
  expect(isMatch(decidePath(rules, path, "every"))).toBe(true);
  expect(isMatch(decidePath(rules, "other", "every"))).toBe(false);
});
