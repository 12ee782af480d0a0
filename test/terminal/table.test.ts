/** Tables for people: as wide as the terminal. */
import { describe, expect, test } from "bun:test";
import { truncateToWidth } from "../../src/terminal/fit.ts";
import { type Cell, renderTable } from "../../src/terminal/table.ts";

const id = "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11";
const header = ["IMAGE", "TAG", "COMMAND"];
const rows = [[{ id }, "app:dev", "make --jobs=2 everything that there is to be made"]];

describe("a table on a terminal of", () => {
  test.each([
    [200, `${id}  app:dev  make --jobs=2 everything that there is to be made`],
    [70, `${id}  app:dev  make --jobs=2 everythi…`],
    // The command is cut first, down to eight columns, then the id.
    [50, "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b…  app:dev  make --…"],
    [10, "0d0f6a5… …"],
  ])("%d columns", (columns, line) => {
    const shown = renderTable({ header, rows }, { columns }).split("\n");
    expect(shown[1]).toBe(line);
    if (columns > 10)
      expect(Math.max(...shown.map((text) => Bun.stringWidth(text)))).toBeLessThanOrEqual(columns);
  });
});

describe("in short cells", () => {
  const now = Date.parse("2026-02-03T04:05:06Z");
  const cellsOf = (cells: Cell[]) =>
    renderTable({ header: ["A"], rows: cells.map((cell) => [cell]) }, { now })
      .trimEnd()
      .split("\n")
      .slice(1);

  test.each<[string, string[], string[]]>([
    ["an id is its first digits", [id, "tag:x"], ["0d0f6a546e0b", "tag:x"]],
    ["the same id in two rows is short", [id, id], ["0d0f6a546e0b", "0d0f6a546e0b"]],
    [
      "ids have as many digits as distinguish them",
      [id, "0d0f6a54-6e0b-4b6e-9f0f-000000000000"],
      ["0d0f6a546e0b4b6e9f0e", "0d0f6a546e0b4b6e9f0f"],
    ],
    [
      "ids that differ only at their end are whole",
      [id, "0d0f6a54-6e0b-4b6e-9f0e-000000000000"],
      [id, "0d0f6a54-6e0b-4b6e-9f0e-000000000000"],
    ],
  ])("%s", (_, ids, shown) => {
    expect(cellsOf(ids.map((each) => ({ id: each })))).toEqual(shown);
  });

  test.each([
    ["2026-02-03T04:05:06Z", "0 s ago"],
    ["2026-02-03T04:04:07Z", "59 s ago"],
    ["2026-02-03T03:05:07Z", "59 min ago"],
    [now - 3 * 3_600_000, "3 h ago"],
    ["2026-02-01T04:05:06Z", "2 d ago"],
    ["2025-10-03T04:05:06Z", "4 months ago"],
    ["2023-10-03T04:05:06Z", "2 years ago"],
    ["2026-02-03T05:00:00Z", "0 s ago"],
    ["soon", "soon"],
    ["", "-"],
  ])("the time %s is %s", (time, shown) => {
    expect(cellsOf([{ time }])).toEqual([shown]);
  });
});

test("a time is whole if cells are not short", () => {
  expect(renderTable({ header: ["A"], rows: [[{ time: 0 }]] })).toBe("A\n1970-01-01T00:00:00.000Z\n");
});

test("a table can have more rows than a call has arguments", () => {
  const rows = Array.from({ length: 1_000_000 }, () => ["x"]);
  expect(renderTable({ header: ["A"], rows })).toHaveLength(2_000_002);
});

test("a pipe or a file gets everything", () => {
  expect(renderTable({ header, rows })).toContain("to be made\n");
});

test("two long columns are cut equally", () => {
  const line = renderTable(
    { header: ["A", "B"], rows: [["a".repeat(60), "b".repeat(50)]] },
    { columns: 42 },
  ).split("\n")[1];
  expect(line).toBe(`${"a".repeat(19)}…  ${"b".repeat(19)}…`);
});

describe("texts to copy", () => {
  const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
  const pushed = ["docker://registry.example/app:1", digest].map((whole) => ({ whole }));

  test("stand on a line each, whole, if the only row does not fit", () => {
    expect(renderTable({ header: ["DESTINATION", "DIGEST"], rows: [pushed] }, { columns: 80 })).toBe(
      `DESTINATION  docker://registry.example/app:1\nDIGEST       ${digest}\n`,
    );
    expect(
      renderTable({ header: ["DESTINATION", "DIGEST"], rows: [pushed] }, { columns: 120 }).split("\n")[1],
    ).toBe(`docker://registry.example/app:1  ${digest}`);
  });

  test("are whole in several rows, too, and the others are cut", () => {
    const rows = ["app", "team"].map((name) => [{ whole: `${name}:${"1".repeat(30)}` }, "x".repeat(30)]);
    expect(
      renderTable({ header: ["TAG", "REST"], rows }, { columns: 40 })
        .split("\n")
        .slice(1, 3),
    ).toEqual([`app:${"1".repeat(30)}   xx…`, `team:${"1".repeat(30)}  xx…`]);
  });
});

test("the header is bold if there are colours, and the columns stay aligned", () => {
  expect(renderTable({ header: ["A", "B"], rows: [["1", "2"]] }, { hasColor: true })).toBe(
    "\u001b[1mA  B\u001b[0m\n1  2\n",
  );
});

test.each([
  ["short", 5, "short"],
  ["longer", 5, "long…"],
  ["日本語", 5, "日本…"],
  ["👩‍👩‍👧x👩‍👩‍👧", 4, "👩‍👩‍👧x…"],
])("%s in %d columns is %s", (text, width, shown) => {
  expect(truncateToWidth(text, width)).toBe(shown);
});
