/** How the test of the README reads blocks and compares output. */
import { describe, expect, test } from "bun:test";
import { readBlocks, readSteps } from "./blocks.ts";
import { matchOutput } from "./expectation.ts";

const one = "0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11";
const other = "9d3d1f6e-31c2-44a4-8a3c-0c9a7b7c1b52";

test("blocks have three kinds; the reason for not running one is right above it", () => {
  const document = [
    ...[
      "# Title",
      "```sh",
      "make",
      "```",
      "<!-- not run: it formats the disk -->",
      "```console",
      "$ mkfs",
      "```",
    ],
    ...[
      "```",
      "a picture",
      "```",
      "````yaml",
      "```",
      "````",
      "<!-- not run: far away -->",
      "",
      "```sh",
      "```",
    ],
  ].join("\n");
  expect(readBlocks(document)).toEqual([
    { kind: "sh", line: 3, lines: ["make"], notRunBecause: undefined },
    { kind: "console", line: 7, lines: ["$ mkfs"], notRunBecause: "it formats the disk" },
    { kind: "yaml", line: 13, lines: ["```"], notRunBecause: undefined },
    { kind: "sh", line: 18, lines: [], notRunBecause: undefined },
  ]);
  expect(() => readBlocks("text\n```sh\nmake\n")).toThrow("line 2");
});

test("a console block has commands with their output", () => {
  expect(readSteps(["$ a", "1", "", "2", "", "$ b \\", "> c  # why", "$ d", "3"])).toEqual([
    { command: "a", outputStart: 1, output: ["1", "", "2"] },
    { command: "b \\\nc  # why", outputStart: 7, output: [] },
    { command: "d", outputStart: 8, output: ["3"] },
  ]);
});

describe("output counts as the same if only ids, times and paths differ", () => {
  test.each<[string, string[], string[], boolean]>([
    ["the same lines", ["a", "b"], ["a", "b"], true],
    ["another line", ["a", "b"], ["a", "c"], false],
    ["an additional line", ["a"], ["a", "b"], false],
    ["a missing line", ["a", "b"], ["a"], false],
    ["another id", [`image ${one}`], [`image ${other}`], true],
    ["two ids in the place of one", [one, one], [one, other], false],
    ["one id in the place of two", [one, other], [one, one], false],
    ["a hash of another length", ["layer:8709f41f767e"], ["layer:8709f41f767e00"], false],
    ["other hashes", ["layer:8709f41f767e"], ["layer:0123456789ab"], true],
    ["another duration", ["in 0.16 s"], ["in 12 s"], true],
    ["another time", ["at 2026-01-02T03:04:05.678Z"], ["at 2027-11-21T01:03:14Z"], true],
    ["another number", ["2 files"], ["3 files"], false],
    ["another home", ["(/home/you/.local/state/bough/engine)"], ["(/tmp/x/.local/state/bough/engine)"], true],
    [
      "another path below it",
      ["/home/you/.local/state/bough/engine"],
      ["/home/you/.local/state/bough"],
      false,
    ],
    ["any lines for `...`", ["a", "...", "z"], ["a", "b", "c", "z"], true],
    ["no line for `...`", ["a", "..."], ["a"], true],
    ["another end after `...`", ["...", "z"], ["a", "y"], false],
  ])("%s", (_, expected, actual, isSame) => {
    expect(matchOutput(expected, actual, new Map()) !== undefined).toBe(isSame);
  });

  test("an id has the same value in the rest of the document", () => {
    const bindings = matchOutput([one], [other], new Map()) ?? new Map();
    expect(matchOutput([one], [other], bindings)).toBeDefined();
    expect(matchOutput([one], [one], bindings)).toBeUndefined();
  });
});
