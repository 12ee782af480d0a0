import { expect, test } from "bun:test";
import fc from "fast-check";
import type { ContextEntry } from "../../src/context/sources/entry.ts";
import { EntryList } from "../../src/context/sources/entry-list.ts";

const name = fc.constantFrom("a", "b", "ab", "ba", "é", "\u{1f600}");
const number = fc.constantFrom(0, 1, 2 ** 40 + 0.25);
const stats = fc.record({
  mode: fc.constantFrom(0o100644, 0o100755),
  dev: number,
  ino: number,
  size: number,
  mtimeMs: number,
  ctimeMs: number,
});
const child = fc.oneof(
  stats.map((stat) => ({ stat, target: undefined })),
  fc
    .constantFrom("a", "b")
    .map((target) => ({ stat: { mode: 0o120777, dev: 0, ino: 0, size: 0, mtimeMs: 0, ctimeMs: 0 }, target })),
);
const children = fc.array(fc.tuple(fc.nat(1), name, child), { maxLength: 20 });

const top: ContextEntry = {
  type: "directory",
  contextPath: "",
  absolutePath: "/c",
  relativePath: "",
  mode: 0o755,
  mtimeMs: 0,
};

function listOf(all: typeof children extends fc.Arbitrary<infer Children> ? Children : never): EntryList {
  const list = EntryList.of(top);
  const directories = ["", "d"].map((path) =>
    list.addDirectory({
      contextPath: path,
      absolutePath: `/c${path === "" ? "" : `/${path}`}`,
      relativePath: path,
    }),
  );
  for (const [directory, name, { stat, target }] of all)
    list.add(directories[directory] ?? 0, name, stat, { target });
  return list;
}

test("a list returns its entries as added, and different lists have different digests", () => {
  fc.assert(
    fc.property(children, children, (one, other) => {
      const [list, second] = [listOf(one), listOf(other)];
      expect(Array.from(list, ({ relativePath }) => relativePath)).toEqual([
        "",
        ...one.map(([directory, name]) => (directory === 0 ? name : `d/${name}`)),
      ]);
      expect(list.at(one.length)).toEqual([...list].at(-1));
      expect(list.digest()).toBe(listOf(one).digest());
      expect(list.digest() === second.digest()).toBe(Bun.deepEquals(one, other));
    }),
  );
});

test("asking for a missing hash is an error, also if another file has one", () => {
  const file = { mode: 0o100644 as const, dev: 1, ino: 1, size: 1, mtimeMs: 1, ctimeMs: 1 };
  const list = listOf([
    [0, "a", { stat: file, target: undefined }],
    [0, "b", { stat: file, target: undefined }],
  ]);
  expect(() => list.hashAt(1)).toThrow("no hash for /c/a");
  list.setHash({ index: 2 }, "1".repeat(64));
  expect(list.hashAt(2)).toBe("1".repeat(64));
  expect(() => list.hashAt(1)).toThrow("no hash for /c/a");
});
