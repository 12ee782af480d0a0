import { expect, test } from "bun:test";
import { accountRows, idOf } from "../src/account-rows.ts";

test.each<[text: string | undefined, id: number | undefined]>([
  ["0", 0],
  ["1000", 1000],
  ["2147483647", 2 ** 31 - 1],
  ["2147483648", undefined],
  ["4294967295", undefined],
  ["99999999999999999999", undefined],
  ["-1", undefined],
  ["+1", undefined],
  ["1e3", undefined],
  ["0x10", undefined],
  [" 1", undefined],
  ["1\r", undefined],
  ["", undefined],
  [undefined, undefined],
])("the id %p is %p", (text, id) => {
  expect(idOf(text)).toBe(id);
});

test("rows are split at their colons, the last one with or without a line end", () => {
  expect([...accountRows("root:x:0:0::/root:/bin/sh\n\na:x:1")]).toEqual([
    ["root", "x", "0", "0", "", "/root", "/bin/sh"],
    [""],
    ["a", "x", "1"],
  ]);
  expect([...accountRows("")]).toEqual([]);
});

test("a row of sixteen million colons gives only the first fields", () => {
  expect([...accountRows(":".repeat(16_000_000))].map((row) => row.length)).toEqual([8]);
});
