/** Tables for people: as wide as the terminal. */
import { describe, expect, test } from "bun:test";
import { truncateToWidth } from "../../src/terminal/fit.ts";
import { renderTable } from "../../src/terminal/table.ts";

const id = "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11";
const header = ["IMAGE", "TAG", "COMMAND"];
const rows = [[id, "app:dev", "make --jobs=2 everything that there is to be made"]];

describe("a table on a terminal of", () => {
  test.each([
    [200, `${id}  app:dev  make --jobs=2 everything that there is to be made`],
    [70, `${id}  app:dev  make --jobs=2 everythi…`],
    // The command gives way down to eight columns, then the id.
    [50, "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b…  app:dev  make --…"],
    [10, "0d0f6a5…  app:dev  make --…"],
  ])("%d columns", (columns, line) => {
    const shown = renderTable(header, rows, { columns }).split("\n");
    expect(shown[1]).toBe(line);
    if (columns > 10)
      expect(Math.max(...shown.map((text) => Bun.stringWidth(text)))).toBeLessThanOrEqual(columns);
  });
});

test("a pipe or a file gets everything", () => {
  expect(renderTable(header, rows)).toContain("to be made\n");
});

test("two long columns give way alike", () => {
  const line = renderTable(["A", "B"], [["a".repeat(60), "b".repeat(50)]], { columns: 42 }).split("\n")[1];
  expect(line).toBe(`${"a".repeat(19)}…  ${"b".repeat(19)}…`);
});

test("the header stands out where there are colours, and the columns stay in line", () => {
  expect(renderTable(["A", "B"], [["1", "2"]], { hasColor: true })).toBe("\u001b[1mA  B\u001b[0m\n1  2\n");
});

test.each([
  ["short", 5, "short"],
  ["longer", 5, "long…"],
  ["日本語", 5, "日本…"],
  ["👩‍👩‍👧x👩‍👩‍👧", 4, "👩‍👩‍👧x…"],
])("%s in %d columns is %s", (text, width, shown) => {
  expect(truncateToWidth(text, width)).toBe(shown);
});
