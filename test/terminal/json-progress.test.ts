/** `--progress json`: steps of concurrent stages can be distinguished. */
import { expect, test } from "bun:test";
import { emitFor } from "../../src/builder/events.ts";
import { showInstruction } from "../../src/builder/location.ts";
import { stepsOf } from "../../src/builder/step-place.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { createJsonProgress } from "../../src/terminal/json-progress.ts";
import { beginStep, operation } from "./stage-events.ts";

const dockerfile = parseDockerfile("ARG V=1\nFROM a AS Build\nRUN make\nFROM b\nRUN test\n", "Dockerfile");

function start() {
  const lines: Record<string, unknown>[] = [];
  let now = Date.parse("2026-01-01T00:00:00Z");
  const progress = createJsonProgress({
    write: (text) => void lines.push(JSON.parse(text)),
    clock: { now: () => now++ },
    logLevel: "info",
  });
  const begin = (number: number) => {
    const step = stepsOf(dockerfile)[number - 1];
    if (step === undefined) throw new Error("no such step");
    const emit = emitFor(step, progress.emit);
    emit({ type: "step", instruction: showInstruction(step.instruction), steps: 5 });
    return emit;
  };
  /** The events without their times. */
  const events = () => lines.map(({ time: _, ...event }) => event);
  return { begin, progress, events };
}

const build = { index: 0, name: "build" };
const last = { index: 1, name: null };

test("every event of an instruction has its stage and step", () => {
  const { begin, events } = start();
  begin(1);
  const [make, run] = [begin(3), begin(5)];
  make({ type: "output", chunk: { stream: "stdout", text: "a" } });
  run({ type: "output", chunk: { stream: "stderr", text: "b" } });
  make({ type: "cached", title: "RUN make", layer: "l", image: "i" });
  run({ type: "warning", message: "odd", line: 5 });
  const made = { layer: null, image: null, operation: null, cached: null, seconds: 0 };
  run({
    type: "step-end",
    record: { stage: last, step: 5, line: 5, instruction: "RUN test", ...made },
  });
  expect(events()).toEqual([
    { type: "step", stage: null, step: 1, steps: 5, line: 1, name: "ARG", instruction: "ARG V=1" },
    { type: "step", stage: build, step: 3, steps: 5, line: 3, name: "RUN", instruction: "RUN make" },
    { type: "step", stage: last, step: 5, steps: 5, line: 5, name: "RUN", instruction: "RUN test" },
    { type: "output", stage: build, step: 3, stream: "stdout", text: "a" },
    { type: "output", stage: last, step: 5, stream: "stderr", text: "b" },
    { type: "cached", stage: build, step: 3, title: "RUN make", layer: "l", image: "i" },
    { type: "warning", stage: last, step: 5, message: "odd", line: 5 },
    { type: "step-end", stage: last, step: 5, line: 5, instruction: "RUN test", ...made },
  ]);
});

test("an event without an instruction has neither", () => {
  const { progress, events } = start();
  progress.log.info("said");
  progress.emit({ type: "warning", message: "not used", line: undefined });
  progress.emit({ type: "tagged", image: "i", tag: "t:1" });
  expect(events()).toEqual([
    { type: "log", level: "info", message: "said" },
    { type: "warning", message: "not used", line: null },
    { type: "tagged", image: "i", tag: "t:1" },
  ]);
});

test("the upload of one step does not suppress events of another", () => {
  const { begin, events } = start();
  for (const emit of [begin(3), begin(5)])
    for (const files of [1, 2]) emit({ type: "upload-progress", files, sentBytes: 0, reused: 0 });
  const amounts = events().filter(({ type }) => type === "upload-progress");
  expect(amounts.map(({ step, files }) => [step, files])).toEqual([
    [3, 1],
    [5, 1],
  ]);
});

test("steps of concurrent stages have their number in the stage, and end separately", () => {
  const { progress, events } = start();
  const [make, test] = [beginStep(2, progress.emit), beginStep(5, progress.emit)];
  make.ran({ succeeded: false });
  test.ran({ succeeded: false, abandoned: true });
  test.end();
  make.end();
  const [second, first] = [
    { stage: { index: 1, name: null }, step: 5 },
    { stage: build, step: 2 },
  ];
  const none = { bytes: 0, truncated: false };
  const ran = { type: "ran", operation, succeeded: false, stdout: none, stderr: none };
  const made = { layer: null, image: null, operation: null, cached: null, seconds: 0 };
  const inBuild = { line: 2, instruction: "RUN make all" };
  const inSecond = { line: 5, instruction: "RUN npm test" };
  expect(events()).toEqual([
    { type: "step", ...first, steps: 8, name: "RUN", ...inBuild, inStage: { step: 2, steps: 3 } },
    { type: "step", ...second, steps: 8, name: "RUN", ...inSecond, inStage: { step: 2, steps: 2 } },
    { ...ran, ...first },
    { ...ran, ...second, abandoned: true },
    { type: "step-end", ...second, ...inSecond, ...made },
    { type: "step-end", ...first, ...inBuild, ...made },
  ]);
});
