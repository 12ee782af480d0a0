/** An image's history: what somebody else has written of it, and what it says of the layers that are here. */
import { describe, expect, test } from "bun:test";
import { completeHistory, type HistoryLine, parseOrigin, withinLimit } from "../../src/image/history.ts";

const at = (second: number) => new Date(second * 1000).toISOString();
const layer = (second: number) => ({ created: at(second), created_by: `layer of ${second}` });
const line = (created_by: string, fields: HistoryLine = {}) => ({ created_by, ...fields });
const empty = { empty_layer: true };

describe("every layer has a line, and every line a time", () => {
  test.each<[string, HistoryLine[], number[], string[]]>([
    ["nothing known", [], [1, 2], ["1 layer of 1", "2 layer of 2"]],
    ["as many", [line("a"), line("e", empty), line("b")], [1, 2], ["1 a", "1 e empty", "2 b"]],
    [
      "one's own first step",
      [line("x", { created: at(1) }), line("e", empty), line("b")],
      [5, 9],
      ["1 x", "9 e empty", "9 b"],
    ],
    ["no layer of one's own", [line("x", { created: at(1) }), line("e", empty)], [5], ["1 x", "1 e empty"]],
    ["merged layers", [line("a"), line("b"), line("c")], [3, 4], ["3 a empty", "3 b", "4 c"]],
    ["all of it in one", [line("a"), line("e", empty), line("b")], [7], ["7 a empty", "7 e empty", "7 b"]],
    [
      "a base of which nobody knows",
      [line("e", empty), line("b")],
      [1, 2],
      ["1 layer of 1", "2 e empty", "2 b"],
    ],
    ["no layers at all", [line("e", empty)], [], ["? e empty"]],
  ])("%s", (_, history, layers, expected) => {
    const complete = completeHistory(history, layers.map(layer));
    const shown = complete.map(({ created, created_by, empty_layer }) => {
      const second = created === undefined ? "?" : Date.parse(created) / 1000;
      return `${second} ${created_by}${empty_layer === true ? " empty" : ""}`;
    });
    expect(shown).toEqual(expected);
  });
});

test("of too many lines those with a layer are kept", () => {
  const few = [line("a"), line("e", empty)];
  expect(withinLimit(few)).toBe(few);
  const many = [line("a"), ...Array.from({ length: 10_000 }, () => line("e", empty)), line("b")];
  expect(withinLimit(many)).toEqual([line("a"), line("b")]);
});

test.each<[string, unknown, unknown]>([
  [
    "texts and marks",
    [{ created_by: "a", empty_layer: true, comment: "" }],
    [{ created_by: "a", empty_layer: true }],
  ],
  ["false is no mark", [{ empty_layer: false }], [{}]],
  ["what OCI does not know", [{ created_by: "a", x: 1 }], [{ created_by: "a" }]],
  ["no list", {}, undefined],
  ["a line that is none", [{ created_by: "a" }, 1], undefined],
  ["a text that is none", [{ created_by: 1 }], undefined],
  ["a time that is none", [{ created: "soon" }], undefined],
  ["too many lines", Array.from({ length: 10_001 }, () => ({})), undefined],
  ["none", null, undefined],
])("%s", (_, history, expected) => {
  expect(parseOrigin({ history, author: "me" })).toEqual(
    expected === undefined ? { author: "me" } : { author: "me", history: expected as HistoryLine[] },
  );
  const again = parseOrigin({ history: expected });
  expect(again.history).toEqual(expected as HistoryLine[] | undefined);
});
