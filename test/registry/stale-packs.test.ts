/** Which packs of GitHub's cache a build writes anew. */
import { expect, test } from "bun:test";
import { chooseStalePacks } from "../../src/registry/github/stale-packs.ts";

const mebibyte = 1024 * 1024;
const many = (count: number) => Array.from({ length: count }, (_, at) => [`${at}`, at + 1, at + 1] as const);

test.each<[string, readonly (readonly [pack: string, used: number, size: number])[], string[]]>([
  ["all of it is used", [["a", 10, 10]], []],
  ["a half is used", [["a", 5, 10]], []],
  ["less is used", [["a", 4, 10]], ["a"]],
  ["twelve are whole", many(12), []],
  ["the smallest of more", many(15), ["0", "1", "2"]],
  [
    "what is left is too much for one build",
    [
      ["a", 300 * mebibyte, 900 * mebibyte],
      ["b", 400 * mebibyte, 900 * mebibyte],
    ],
    ["a"],
  ],
])("%s", (_, packs, chosen) => {
  const live = packs.map(([pack, size]) => [pack, [{ size }]] as const);
  expect(chooseStalePacks(live, new Map(packs.map(([pack, , size]) => [pack, size])))).toEqual(chosen);
});
