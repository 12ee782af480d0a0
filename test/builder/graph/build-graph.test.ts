/** Dependencies of stages: edges, the stages that a target needs, and invalid references. */
import { describe, expect, test } from "bun:test";
import { dialects } from "../../../src/builder/dialect.ts";
import {
  type BuildGraph,
  buildGraph,
  findStage,
  reachableFrom,
} from "../../../src/builder/graph/build-graph.ts";
import { findBadReferences } from "../../../src/builder/graph/stage-references.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";

function graphOf(text: string): BuildGraph {
  const dockerfile = parseDockerfile(text, "Dockerfile");
  return buildGraph(dockerfile, (word) => (word.includes("$") ? undefined : word));
}

/** Returns `1 copy -> 0` for each edge to a stage, and the other kinds of targets in words. */
function edgesOf({ nodes }: BuildGraph): string[] {
  return nodes.flatMap(({ stage, edges }) =>
    edges.map(({ kind, reference, target }) => {
      const to = target.kind === "stage" ? target.index : `${target.kind} ${reference}`;
      return `${stage.index} ${kind} -> ${to}`;
    }),
  );
}

describe("edges", () => {
  test.each([
    ["a single stage", "FROM alpine", ["0 from -> image alpine"]],
    ["FROM a stage", "FROM alpine AS a\nFROM a", ["0 from -> image alpine", "1 from -> 0"]],
    [
      "a copy by name, in any case",
      "FROM alpine AS build\nFROM debian\nCOPY --from=BUILD /a /b",
      ["0 from -> image alpine", "1 from -> image debian", "1 copy -> 0"],
    ],
    [
      "a copy by number",
      "FROM alpine\nFROM debian\nCOPY --from=0 /a /b",
      ["0 from -> image alpine", "1 from -> image debian", "1 copy -> 0"],
    ],
    [
      "a trigger belongs to the stage whose FROM names its stage",
      "FROM alpine AS f\nFROM alpine AS a\nONBUILD COPY --from=f /a /b\nFROM a",
      ["0 from -> image alpine", "1 from -> image alpine", "2 from -> 1", "2 copy -> 0"],
    ],
    [
      "a copy from an image",
      "FROM alpine\nCOPY --from=nginx:1 /a /b",
      ["0 from -> image alpine", "0 copy -> image nginx:1"],
    ],
    [
      "a mount",
      "FROM alpine AS tools\nFROM debian\nRUN --mount=from=tools,target=/t --mount=type=cache,target=/c make",
      ["0 from -> image alpine", "1 from -> image debian", "1 mount -> 0"],
    ],
    [
      "a number in FROM is an image's name",
      "FROM alpine\nFROM 0",
      ["0 from -> image alpine", "1 from -> image 0"],
    ],
    [
      "the later of two stages with one name",
      "FROM alpine AS a\nFROM debian AS a\nFROM a",
      ["0 from -> image alpine", "1 from -> image debian", "2 from -> 1"],
    ],
    [
      "a stage rather than an image of the same name",
      "FROM debian AS alpine\nFROM alpine",
      ["0 from -> image debian", "1 from -> 0"],
    ],
    [
      "a stage that is named like its base",
      "FROM alpine AS alpine\nFROM alpine",
      ["0 from -> image alpine", "1 from -> 0"],
    ],
    [
      "the stage itself",
      "FROM alpine AS a\nCOPY --from=a /x /y",
      ["0 from -> image alpine", "0 copy -> missing a"],
    ],
    [
      "a number without an earlier stage",
      "FROM alpine\nCOPY --from=0 /x /y\nCOPY --from=7 /x /y",
      ["0 from -> image alpine", "0 copy -> missing 0", "0 copy -> missing 7"],
    ],
    ["a variable", "FROM alpine\nCOPY --from=$X /x /y", ["0 from -> image alpine", "0 copy -> unknown $X"]],
  ])("%s", (_, text, edges) => expect(edgesOf(graphOf(text))).toEqual(edges));
});

const diamond = [
  "FROM alpine AS base",
  "FROM base AS left",
  "FROM base AS right",
  "FROM debian AS unused",
  "FROM alpine AS last",
  "COPY --from=left /l /l",
  "COPY --from=right /r /r",
].join("\n");

describe("a target", () => {
  test.each([
    [undefined, 4],
    ["last", 4],
    ["LEFT", 1],
    ["2", 2],
    ["9", undefined],
    ["nothing", undefined],
  ])("%p is stage %p", (target, index) => {
    const { stages } = parseDockerfile(diamond, "Dockerfile");
    expect(findStage(stages, target)?.index).toBe(index);
  });

  test.each([
    [4, [0, 1, 2, 4]],
    [1, [0, 1]],
    [3, [3]],
  ])("%d needs %p", (target, needed) => expect(reachableFrom(graphOf(diamond), target)).toEqual(needed));
});

describe("an invalid --from is an error:", () => {
  test.each([
    [
      "itself by name",
      "FROM alpine AS a\nCOPY --from=A /x /y",
      2,
      "circular dependency detected on stage: A",
    ],
    ["itself by number", "FROM alpine\nCOPY --from=0 /x /y", 2, "a stage can't copy from itself"],
    [
      "a later stage",
      "FROM alpine\nCOPY --from=b /x /y\nFROM debian AS b",
      2,
      "that stage is defined later, on line 3",
    ],
    [
      "a later number",
      "FROM alpine\nCOPY --from=1 /x /y\nFROM debian AS b",
      2,
      "that stage is defined later",
    ],
    ["no such number", "FROM alpine\nRUN x\nCOPY --from=7 /x /y", 3, "there is 1 stage, counted from 0"],
    [
      "a variable",
      "FROM alpine AS a\nFROM a\nARG F=a\nCOPY --from=$F /x /y",
      4,
      "variables are not replaced there",
    ],
    [
      "a mount",
      "FROM alpine\nRUN --mount=type=bind,from=3,target=/x true",
      2,
      "there is 1 stage, counted from 0",
    ],
  ])("%s", (_, text, line, why) => {
    const dockerfile = parseDockerfile(text, "Dockerfile");
    const problems = findBadReferences(dockerfile, graphOf(text), dialects.docker);
    expect(problems.map(({ range, message }) => [range.start, message.replace(/^--from=\S+: /, "")])).toEqual(
      [[line, why]],
    );
    const [{ culprit } = {}] = problems;
    // The caret is under the reference.
    const shown = dockerfile.lines[line - 1]?.slice((culprit?.column ?? 0) - 1);
    expect(shown).toStartWith(/from=([^\s,]+)/.exec(dockerfile.lines[line - 1] ?? "")?.[1] ?? "");
  });
});

test("a chain of 5,000 stages does not overflow the stack", () => {
  const text = Array.from(
    { length: 5000 },
    (_, index) => `FROM ${index === 0 ? "alpine" : `s${index - 1}`} AS s${index}`,
  );
  expect(reachableFrom(graphOf(text.join("\n")), 4999)).toHaveLength(5000);
});
