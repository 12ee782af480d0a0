/** What is recorded of a build while it runs. */
import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import type { BuildEvent } from "../../src/builder/events.ts";
import type { BuildInputs } from "../../src/cli/builds/inputs.ts";
import { startRecording } from "../../src/cli/builds/recording/recording.ts";
import type { BuildInvocation } from "../../src/cli/builds/request.ts";
import { BoughError } from "../../src/errors.ts";
import { historyPath, openHistory } from "../../src/history/history-database.ts";
import { createLog } from "../../src/terminal/log.ts";
import { temporaryDirectory } from "../support/bough.ts";

const steps = 40;
const printed = `${"x".repeat(189_999)}\n`;
const summary = { bytes: printed.length, truncated: false };
const now = Date.parse("2026-03-01T10:00:00Z");

/** Records a build of steps that print so much within one moment that it is not stored meanwhile. */
async function record(home: string, keepsOutput: boolean) {
  const invocation = {
    runtime: {
      clock: { now: () => now },
      environment: { BOUGH_HOME: home },
      workingDirectory: "/",
      signal: new AbortController().signal,
    },
    log: createLog("error", () => undefined),
    options: {},
  } as unknown as BuildInvocation;
  const recording = startRecording(invocation, { keepsOutput });
  const inputs = {
    ...{ buildArgs: new Map(), context: { absolutePath: "/src/app" }, location: "/src/app", platforms: [] },
    ...{
      dockerfile: { absolutePath: "/src/app/Dockerfile", path: "Dockerfile" },
      dialect: { name: "docker" },
    },
  } as unknown as BuildInputs;
  recording.begin(inputs, { session: "build:0123", service: "embedded engine" });
  const note = (step: number, event: object) =>
    recording.note({ ...event, stage: { index: 0, name: null }, step } as BuildEvent);
  for (let step = 1; step <= steps; step++) {
    const instruction = { name: "RUN", line: step, title: `RUN ${step}` };
    note(step, { type: "step", steps, needs: [], instruction });
    note(step, { type: "output", chunk: { stream: "stdout", text: printed } });
    note(step, { type: "ran", operation: "op", succeeded: true, stdout: summary, stderr: summary });
  }
  await recording.fail(new BoughError("stopped"));
  return recording.read();
}

describe("output that is not stored any more because there is too much of it", () => {
  test("is not said to be kept", async () => {
    const home = temporaryDirectory();
    const recorded = await record(home, false);
    using history = openHistory(home);
    const id = history.list()[0]?.id ?? "";
    const found = history.record(id)?.steps ?? [];
    expect(found).toHaveLength(steps);
    for (const { step, output } of found)
      expect([step, output]).toEqual([
        step,
        { length: printed.length, kept: history.output(id, step)?.length ?? 0 },
      ]);
    expect(found[0]?.output?.kept).toBe(printed.length);
    expect(found.at(-1)?.output?.kept).toBe(0);
    expect(recorded?.outputs.size).toBe(0);
  });

  test("is kept for the page", async () => {
    const recorded = await record(temporaryDirectory(), true);
    expect(recorded?.outputs.size).toBe(steps);
    expect(recorded?.record.steps.at(-1)?.output).toEqual({ length: printed.length, kept: printed.length });
  });

  test("is kept for the page where the history can't be written, too", async () => {
    const home = temporaryDirectory();
    mkdirSync(historyPath(home));
    expect((await record(home, true))?.outputs.size).toBe(steps);
  });
});
