/** Records of builds: what is kept of events and of output. */
import { describe, expect, test } from "bun:test";
import type { BuildEvent } from "../../src/builder/events.ts";
import type { StepRecord } from "../../src/builder/result.ts";
import { countCached } from "../../src/history/build-record.ts";
import { criticalPathOf } from "../../src/history/critical-path.ts";
import { createOutputText } from "../../src/history/output-text.ts";
import { recordBuild, type TimedEvent } from "../../src/history/record-build.ts";
import { originOf, start } from "./builds.ts";

type Placed = { stage: number; step: number };

const step = (at: number, { stage, step }: Placed, title: string, needs: number[] = []): TimedEvent => ({
  at: start + at,
  event: {
    type: "step",
    ...{ stage: { index: stage, name: `s${stage}` }, step, steps: 5, needs },
    instruction: { name: title.split(" ", 1)[0] === "FROM" ? "FROM" : "RUN", line: step, title },
  },
});
const end = (at: number, { stage, step }: Placed, cached: boolean | null): TimedEvent => {
  const place = { stage: { index: stage, name: `s${stage}` }, step };
  const record: StepRecord = {
    ...{ ...place, line: step, instruction: "", cached, seconds: 0, operation: null },
    ...{ layer: cached === null ? null : `layer:${step}`, image: cached === null ? null : `image ${step}` },
  };
  return { at: start + at, event: { type: "step-end", record, ...place } };
};
const placed = (at: number, { stage, step }: Placed, event: object): TimedEvent => ({
  at: start + at,
  event: { ...event, stage: { index: stage, name: `s${stage}` }, step } as BuildEvent,
});

const one = { stage: 0, step: 1 };
const two = { stage: 0, step: 2 };
const three = { stage: 1, step: 3 };
const four = { stage: 1, step: 4 };
const silence = { bytes: 0, truncated: false };

function record(events: readonly TimedEvent[], now = 1000) {
  return recordBuild(events, {
    ...{
      id: "b",
      origin: originOf("app"),
      start,
      now: start + now,
      status: "failed",
      inputs: [],
      outputs: new Map(),
    },
  });
}

test("steps have times, outcomes, reasons and what they waited for", () => {
  const built = record([
    step(0, one, "FROM base"),
    end(10, one, true),
    step(10, two, "RUN make"),
    placed(20, two, { type: "explained", title: "", line: 2, explanation: { reason: "--no-cache" } }),
    placed(30, two, { type: "spawned", operation: "op", title: "" }),
    end(500, two, false),
    step(0, three, "FROM base"),
    end(10, three, true),
    step(500, four, "RUN test", [0]),
    placed(900, four, { type: "step-failed", title: "" }),
  ]);
  expect(
    built.steps.map(({ title, start, end, outcome, reason }) => [title, start, end, outcome, reason?.reason]),
  ).toEqual([
    ["FROM base", 0, 10, "cached", undefined],
    ["RUN make", 10, 500, "made", "--no-cache"],
    ["FROM base", 0, 10, "cached", undefined],
    ["RUN test", 500, 900, "failed", undefined],
  ]);
  expect(built.steps[1]?.activities).toEqual([{ name: "operation", start: 30, end: 500 }]);
  expect(countCached(built.steps)).toEqual({ layers: 2, cached: 0 });
  const path = criticalPathOf(built);
  expect(path.steps.map(({ step }) => step)).toEqual([1, 2, 4]);
  expect(path.slowest?.title).toBe("RUN make");
});

test("steps that were under way when the build ended are stopped", () => {
  const { steps } = record([step(0, one, "FROM base"), end(10, one, true), step(10, two, "RUN make")], 700);
  expect(steps.map(({ outcome, end }) => [outcome, end])).toEqual([
    ["cached", 10],
    ["stopped", 700],
  ]);
});

test("of a step that was performed again, the last time counts; the layer of staged files is a step of its own", () => {
  const { steps } = record([
    step(0, one, "FROM base"),
    end(10, one, true),
    step(10, two, "RUN make"),
    { at: start + 20, event: { type: "forgotten-layer", layer: "", image: "" } },
    step(30, one, "FROM base"),
    end(40, one, true),
    step(40, two, "RUN make"),
    end(60, two, false),
    placed(70, two, { type: "spawned", operation: "op", title: "" }),
    placed(80, two, { type: "ran", operation: "op", succeeded: true, stdout: silence, stderr: silence }),
  ]);
  expect(steps.map(({ start, title, isRest }) => [start, title, isRest])).toEqual([
    [30, "FROM base", false],
    [40, "RUN make", false],
    [70, "layer of the staged files, RUN make", true],
  ]);
});

describe("output", () => {
  const read = (...chunks: [stream: "stdout" | "stderr", text: string][]) => {
    const output = createOutputText();
    for (const [stream, text] of chunks) output.append({ stream, text });
    return output.read();
  };

  test("is kept in whole lines, in the order of their ends", () => {
    expect(read(["stdout", "a"], ["stderr", "error\n"], ["stdout", "b\n"], ["stdout", "rest"])).toEqual({
      text: "error\nab\nrest\n",
      length: 13,
    });
  });

  test("of a long one the beginning and the end are kept, and what is left out is counted", () => {
    const line = `${"x".repeat(99)}\n`;
    const { text, length } = read(
      ...Array.from({ length: 100_000 }, () => ["stdout", line] as const).map(
        (each) => [...each] as ["stdout", string],
      ),
      ["stderr", "the end\n"],
    );
    expect(length).toBe(10_000_008);
    expect(text.length).toBeLessThan(300_000);
    expect(text.startsWith(line)).toBe(true);
    expect(text.endsWith("the end\n")).toBe(true);
    const [, left] = /^\[\.\.\. (\d+) characters are not kept \.\.\.\]$/m.exec(text) ?? [];
    expect(Number(left) + text.replace(/^\[.*\n/m, "").length).toBe(length);
  });

  test("of one endless line, too, memory is bounded", () => {
    const output = createOutputText();
    for (let round = 0; round < 5000; round++) output.append({ stream: "stdout", text: "=".repeat(1000) });
    const { text, length } = output.read();
    expect(length).toBe(5_000_000);
    expect(text.length).toBeLessThan(300_000);
  });
});
