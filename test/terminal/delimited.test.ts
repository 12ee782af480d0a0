/** `-f csv` and `-f tsv`: the same tables for spreadsheets and programs. */
import { expect, test } from "bun:test";
import {
  type Cell,
  durationCell,
  renderDelimited,
  renderRecords,
  sizeCell,
} from "../../src/terminal/table.ts";

const id = "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11";

test.each<[cell: Cell, csv: string, tsv?: string]>([
  ["plain text", "plain text"],
  ["", ""],
  ["-", "-"],
  [null, ""],
  ["a,b", '"a,b"', "a,b"],
  ["a\tb", "a\tb", '"a\tb"'],
  ['say "x"', '"say ""x"""'],
  ["two\nlines", '"two\nlines"'],
  ["end\r", '"end\r"'],
  [{ id }, id],
  [{ whole: "app:dev" }, "app:dev"],
  [{ time: Date.parse("2026-02-03T04:05:06Z") }, "2026-02-03T04:05:06.000Z"],
  [{ time: "" }, ""],
  [sizeCell(4_700_000), "4700000"],
  [sizeCell(undefined), ""],
  [durationCell(61.5), "61.5"],
  [{ shown: "├─○ 3", value: 3 }, "3"],
  [{ shown: "it stays", value: null }, ""],
])("%j", (cell, csv, tsv = csv) => {
  const table = { header: ["A", "B"], rows: [[cell, "x"]] };
  expect(renderDelimited(table, "csv")).toBe(`A,B\n${csv},x\n`);
  expect(renderDelimited(table, "tsv")).toBe(`A\tB\n${tsv}\tx\n`);
});

test("a table without rows is its header", () => {
  expect(renderDelimited({ header: ["A", "B"], rows: [] }, "csv")).toBe("A,B\n");
});

test.each([
  [{ operation: "x" }, "operation\nx\n"],
  [{ image: "x", tags: ["a", "b"], size: null, count: 2 }, 'image,tags,size,count\nx,"[""a"",""b""]",,2\n'],
  [[{ a: 1 }, { a: true, b: "y" }], "a,b\n1,\ntrue,y\n"],
  ["word", "value\nword\n"],
  [[], ""],
])("a result that is no table: %j", (json, csv) => expect(renderRecords(json, "csv")).toBe(csv));
