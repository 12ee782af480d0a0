import { expect, test } from "bun:test";
import { changedTimes, compareBuilds } from "../../src/history/compare-builds.ts";
import { recordOf, stepOf } from "./builds.ts";

const shown = (before: ReturnType<typeof stepOf>[], after: ReturnType<typeof stepOf>[]) =>
  compareBuilds(recordOf("a", before), recordOf("b", after)).steps.map((change) => [
    change.before?.title ?? null,
    change.after?.title ?? null,
  ]);

test("a step whose text has changed is compared with the one in its place", () => {
  expect(
    shown(
      [stepOf(1, "FROM a"), stepOf(2, "RUN one"), stepOf(3, "RUN two"), stepOf(4, "RUN three")],
      [stepOf(1, "FROM a"), stepOf(2, "RUN one"), stepOf(3, "RUN sleep 2; two"), stepOf(4, "RUN three")],
    ),
  ).toEqual([
    ["FROM a", "FROM a"],
    ["RUN one", "RUN one"],
    ["RUN two", "RUN sleep 2; two"],
    ["RUN three", "RUN three"],
  ]);
});

test("steps that were moved, added or removed are found; stages are compared by their names", () => {
  const inStage = (name: string) => ({ stage: { index: 0, name } });
  expect(
    shown(
      [
        stepOf(1, "FROM a", inStage("x")),
        stepOf(2, "RUN old", inStage("x")),
        stepOf(3, "FROM b", inStage("gone")),
      ],
      [
        stepOf(1, "FROM b", inStage("new")),
        stepOf(2, "FROM a", inStage("x")),
        stepOf(3, "COPY . .", inStage("x")),
        stepOf(4, "RUN old", inStage("x")),
      ],
    ),
  ).toEqual([
    [null, "FROM b"],
    ["FROM a", "FROM a"],
    [null, "COPY . ."],
    ["RUN old", "RUN old"],
    ["FROM b", null],
  ]);
});

test("times, sizes and misses are compared; small changes of time are nobody's", () => {
  const { steps, ...others } = compareBuilds(
    recordOf("a", [
      stepOf(1, "RUN one", { end: 1000, outcome: "cached", addedBytes: 100 }),
      stepOf(2, "RUN two", { end: 5000, addedBytes: 7 }),
    ]),
    recordOf("b", [
      stepOf(1, "RUN one", { end: 3000, addedBytes: 150 }),
      stepOf(2, "RUN two", { end: 5200, addedBytes: null }),
    ]),
  );
  expect(steps.map(({ seconds, bytes, isMissed }) => [seconds, bytes, isMissed])).toEqual([
    [2, 50, true],
    [expect.closeTo(0.2), undefined, false],
  ]);
  expect(changedTimes({ steps, ...others }).map(({ after }) => after?.step)).toEqual([1]);
  expect([others.cachedBefore, others.cachedAfter]).toEqual([
    { layers: 2, cached: 1 },
    { layers: 2, cached: 0 },
  ]);
});
