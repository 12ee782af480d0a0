/** Names of `--build-context`: which references mean one, and which stages it replaces. */
import { describe, expect, test } from "bun:test";
import { findContext, type NamedContexts } from "../../../src/builder/contexts/named-context.ts";
import { overrideStages } from "../../../src/builder/graph/build-graph.ts";
import { graphOf, staticGlobals } from "../../../src/builder/graph/stage-references.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";

const contextsOf = (...names: string[]): NamedContexts =>
  new Map(names.map((name) => [name, { kind: "image", name, reference: `for-${name}:1` }]));

describe("a reference means the context", () => {
  test.each<[reference: string, name: string]>([
    ["lib", "lib"],
    ["alpine", "alpine"],
    ["alpine:latest", "alpine"],
    ["library/alpine", "alpine"],
    ["docker.io/alpine", "alpine"],
    ["docker.io/library/alpine:latest", "alpine"],
    ["index.docker.io/library/alpine", "alpine"],
    ["alpine:3.20", "alpine:3.20"],
    ["docker.io/team/app:latest", "team/app"],
    ["registry.example/team/app:latest", "registry.example/team/app"],
    [`docker.io/library/alpine@sha256:${"a".repeat(64)}`, `alpine@sha256:${"a".repeat(64)}`],
  ])("%s: %s", (reference, name) => {
    expect(findContext(reference, contextsOf(name))).toMatchObject({ name });
  });
});

test.each<[reference: string, name: string]>([
  ["alpine:3.20", "alpine"],
  ["alpine", "alpine:3.20"],
  ["registry.example/alpine", "alpine"],
  ["docker.io/library/team/app", "team/app"],
  ["LIB", "lib"],
  ["scratch", "scratch"],
  ["Scratch", "scratch"],
  ["context", "context"],
])("%s does not mean the context %s", (reference, name) => {
  expect(findContext(reference, contextsOf(name))).toBeUndefined();
});

describe("stages", () => {
  test.each<[title: string, text: string, names: string[], edges: string[]]>([
    [
      "an image is replaced wherever it is named",
      "FROM alpine\nCOPY --from=docker.io/library/alpine:latest /a /b\nRUN --mount=from=alpine,target=/m true",
      ["alpine"],
      ["0 from context alpine", "0 copy context alpine", "0 mount context alpine"],
    ],
    [
      "a stage of the name is replaced with all of its instructions",
      "FROM alpine AS lib\nCOPY --from=other /a /b\nFROM alpine\nCOPY --from=lib /a /b",
      ["lib"],
      ["0 from context lib", "1 from image alpine", "1 copy context lib"],
    ],
    [
      "the replaced stage may be named by its number and in any case",
      "FROM a AS lib\nFROM b\nCOPY --from=0 /a /b\nCOPY --from=LIB /a /b\nRUN --mount=from=Lib,target=/m true",
      ["lib"],
      [
        "0 from context lib",
        "1 from image b",
        "1 copy context lib",
        "1 copy context lib",
        "1 mount context lib",
      ],
    ],
    [
      "a replaced stage may be defined later",
      "FROM a\nCOPY --from=lib /a /b\nFROM b AS lib",
      ["lib"],
      ["0 from image a", "0 copy context lib", "1 from context lib"],
    ],
    [
      "a trigger takes from the context, too",
      "FROM a AS lib\nFROM b AS base\nONBUILD COPY --from=0 /a /b\nFROM base",
      ["lib"],
      ["0 from context lib", "1 from image b", "2 from stage base", "2 copy context lib"],
    ],
    [
      "a stage with an image's name is replaced by the image's longer name",
      "FROM a AS alpine\nFROM alpine",
      ["alpine"],
      ["0 from context alpine", "1 from context alpine"],
    ],
    ["variables in FROM are replaced before", "ARG BASE=lib\nFROM $BASE", ["lib"], ["0 from context lib"]],
    [
      "other stages stay",
      "FROM a AS build\nFROM b\nCOPY --from=build /a /b\nCOPY --from=0 /a /b",
      ["lib"],
      ["0 from image a", "1 from image b", "1 copy stage build", "1 copy stage 0"],
    ],
  ])("%s", (_, text, names, edges) => {
    const contexts = contextsOf(...names);
    const dockerfile = overrideStages(parseDockerfile(text, "Dockerfile"), contexts);
    const { nodes } = graphOf(
      dockerfile,
      staticGlobals(dockerfile, { buildArgs: new Map(), target: undefined }),
      contexts,
    );
    const found = nodes.flatMap(({ stage, edges }) =>
      edges.map(({ kind, reference, target }) =>
        target.kind === "context"
          ? `${stage.index} ${kind} context ${target.context.name}`
          : `${stage.index} ${kind} ${target.kind} ${reference}`,
      ),
    );
    expect(found).toEqual(edges);
    // Both lists of the same Dockerfile have the same instructions.
    expect(dockerfile.instructions.slice(dockerfile.globals.length)).toEqual(
      dockerfile.stages.flatMap(({ from, instructions }) => [from, ...instructions]),
    );
  });
});
