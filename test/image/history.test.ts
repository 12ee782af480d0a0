/** An image's history: reading what other programs wrote, and matching it with the layers that bough has. */
import { describe, expect, test } from "bun:test";
import {
  completeHistory,
  type HistoryLine,
  parseImageOrigin,
  truncateHistory,
} from "../../src/image/history.ts";

const at = (second: number) => new Date(second * 1000).toISOString();
const layer = (second: number) => ({ created: at(second), created_by: `layer of ${second}` });
const line = (created_by: string, fields: HistoryLine = {}) => ({ created_by, ...fields });
const empty = { empty_layer: true };

describe("every layer has a line, and every line a time", () => {
  test.each<[string, HistoryLine[], number[], string[]]>([
    ["no history", [], [1, 2], ["1 layer of 1", "2 layer of 2"]],
    ["a line for each layer", [line("a"), line("e", empty), line("b")], [1, 2], ["1 a", "1 e empty", "2 b"]],
    [
      "a first line with a time of its own",
      [line("x", { created: at(1) }), line("e", empty), line("b")],
      [5, 9],
      ["1 x", "9 e empty", "9 b"],
    ],
    [
      "a last step without a layer",
      [line("x", { created: at(1) }), line("e", empty)],
      [5],
      ["1 x", "1 e empty"],
    ],
    [
      "fewer layers than lines, as after a merge",
      [line("a"), line("b"), line("c")],
      [3, 4],
      ["3 a empty", "3 b", "4 c"],
    ],
    [
      "all lines in one layer",
      [line("a"), line("e", empty), line("b")],
      [7],
      ["7 a empty", "7 e empty", "7 b"],
    ],
    ["a base without a history", [line("e", empty), line("b")], [1, 2], ["1 layer of 1", "2 e empty", "2 b"]],
    ["no layers", [line("e", empty)], [], ["? e empty"]],
  ])("%s", (_, history, layers, expected) => {
    const complete = completeHistory(history, layers.map(layer));
    const shown = complete.map(({ created, created_by, empty_layer }) => {
      const second = created === undefined ? "?" : Date.parse(created) / 1000;
      return `${second} ${created_by}${empty_layer === true ? " empty" : ""}`;
    });
    expect(shown).toEqual(expected);
  });
});

test("a history with too many lines keeps those with a layer", () => {
  const few = [line("a"), line("e", empty)];
  expect(truncateHistory(few)).toBe(few);
  const many = [line("a"), ...Array.from({ length: 10_000 }, () => line("e", empty)), line("b")];
  expect(truncateHistory(many)).toEqual([line("a"), line("b")]);
});

describe("the history of a configuration is read", () => {
  test.each<[string, unknown, unknown]>([
    [
      "with its texts and flags",
      [{ created_by: "a", empty_layer: true, comment: "" }],
      [{ created_by: "a", empty_layer: true }],
    ],
    ["without flags that are false", [{ empty_layer: false }], [{}]],
    ["without fields that OCI does not define", [{ created_by: "a", x: 1 }], [{ created_by: "a" }]],
    ["not at all if it is not a list", {}, undefined],
    ["not at all if a line is not an object", [{ created_by: "a" }, 1], undefined],
    ["not at all if a text is a number", [{ created_by: 1 }], undefined],
    ["not at all if a time is invalid", [{ created: "soon" }], undefined],
    ["not at all if it has too many lines", Array.from({ length: 10_001 }, () => ({})), undefined],
    ["not at all if it is null", null, undefined],
  ])("%s", (_, history, expected) => {
    expect(parseImageOrigin({ history, author: "me" })).toEqual(
      expected === undefined ? { author: "me" } : { author: "me", history: expected as HistoryLine[] },
    );
    const again = parseImageOrigin({ history: expected });
    expect(again.history).toEqual(expected as HistoryLine[] | undefined);
  });
});
