import { expect, test } from "bun:test";
import { AbandonedError, type StepEvent } from "../../src/builder/events.ts";
import { createOutputReporter } from "../../src/builder/operations/operation.ts";

test.each([
  ["succeeded", undefined, true, false],
  ["failed", undefined, false, false],
  ["was interrupted", new Error("interrupted"), false, false],
  ["was ended because another stage failed", new AbandonedError(), false, true],
  ["succeeded although another stage failed", new AbandonedError(), true, false],
])("reports the end of a command that %s", (_, reason, succeeded, abandoned) => {
  const events: object[] = [];
  const stage = new AbortController();
  if (reason !== undefined) stage.abort(reason);
  const emit = (event: StepEvent) => void events.push(event);
  const whole = { truncated: false };
  createOutputReporter("op", emit, stage.signal).end({ stdout: whole, stderr: whole }, succeeded);
  const nothing = { bytes: 0, truncated: false };
  const ran = { type: "ran", operation: "op", succeeded, stdout: nothing, stderr: nothing };
  expect(events).toEqual([abandoned ? { ...ran, abandoned } : ran]);
});
