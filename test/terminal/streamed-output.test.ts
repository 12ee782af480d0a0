/** A command's output in a plain log: shown while the command runs, both streams in their order. */
import { describe, expect, test } from "bun:test";
import type { BuildEvent } from "../../src/builder/events.ts";
import { skippedInstruction } from "../../src/builder/state/warnings.ts";
import { stepsOf } from "../../src/builder/step-place.ts";
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import type { OutputChunk } from "../../src/service/service.ts";
import { createLog, type LogLevel } from "../../src/terminal/log.ts";
import { createPlainProgress } from "../../src/terminal/progress.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";

const dockerfile = parseDockerfile("FROM a\nRUN make\n", "Dockerfile");

function start(logLevel: LogLevel = "info") {
  let written = "";
  const write = (text: string) => {
    written += text;
  };
  const progress = createPlainProgress({
    ...{ log: createLog(logLevel, write), clock: createManualClock(), logLevel },
    write: { line: write, output: write },
    openSpoolFile: () => openSpoolFile(temporaryDirectory()),
  });
  return { ...progress, written: () => written };
}

const [, place] = stepsOf(dockerfile);
if (place === undefined) throw new Error("no such step");
const { stage, step } = place;

const output = (stream: OutputChunk["stream"], text: string): BuildEvent => ({
  ...{ type: "output", stage, step, chunk: { stream, text } },
});

/** The events of a command's end. `stdout` and `stderr` are the output that no event contained before. */
function ran(stdout: string, stderr: string, succeeded = true): BuildEvent[] {
  const rest = (stream: OutputChunk["stream"], text: string): BuildEvent[] =>
    text === "" ? [] : [{ type: "output", stage, step, chunk: { stream, text }, isRest: true }];
  const all = { bytes: 0, truncated: false };
  return [
    ...rest("stdout", stdout),
    ...rest("stderr", stderr),
    { type: "ran", stage, step, operation: "op", succeeded, stdout: all, stderr: all },
  ];
}

const tagged: BuildEvent = { type: "tagged", image: "i", tag: "t" };

describe("output is", () => {
  const rows: { title: string; events: BuildEvent[]; logLevel?: LogLevel; log: string }[] = [
    {
      title: "shown before the command ends",
      events: [output("stdout", "one\n"), output("stdout", "two")],
      log: "[INFO] stdout:\none\ntwo",
    },
    {
      title: "in the order of both streams, after one header",
      events: [output("stdout", "1\n"), output("stderr", "2\n"), output("stdout", "3\n"), ...ran("", "")],
      log: "[INFO] stdout:\n1\n2\n3\n",
    },
    {
      title: "labelled for each stream if standard error comes first",
      events: [output("stderr", "1\n"), output("stdout", "2\n"), output("stderr", "3\n"), ...ran("", "")],
      log: "[INFO] stderr:\n1\n[INFO] stdout:\n2\n3\n",
    },
    {
      title: "completed by a line end",
      events: [output("stdout", "no line end"), ...ran("", ""), tagged],
      log: "[INFO] stdout:\nno line end\n[INFO] tagged i as t\n",
    },
    {
      title: "shown at the end if the service sends nothing before",
      events: [...ran("out\n", "err\n"), tagged],
      log: "[INFO] stdout:\nout\n[INFO] stderr:\nerr\n[INFO] tagged i as t\n",
    },
    {
      title: "completed by the part that no event contained",
      events: [output("stdout", "one\n"), ...ran("two\n", ""), tagged],
      log: "[INFO] stdout:\none\n[INFO] stdout:\ntwo\n[INFO] tagged i as t\n",
    },
    {
      title: "separate for each command",
      events: [output("stdout", "1\n"), ...ran("", ""), output("stdout", "2\n"), ...ran("", "")],
      log: "[INFO] stdout:\n1\n[INFO] stdout:\n2\n",
    },
    {
      title: "not shown if only warnings are",
      events: [output("stdout", "1\n"), ...ran("", "")],
      logLevel: "warn",
      log: "",
    },
    {
      title: "part of the error if only errors are shown and the command fails",
      events: [output("stdout", "1\n"), ...ran("", "", false)],
      logLevel: "error",
      log: "[ERROR] stdout:\n1\n",
    },
  ];
  test.each(rows)("$title", ({ events, logLevel, log }) => {
    const progress = start(logLevel);
    for (const event of events) progress.emit(event);
    expect(progress.written()).toBe(log);
  });

  test.each([
    ["shown completely with the error", false],
    ["not shown if the command succeeds", true],
  ])("%s, if it is long and only errors are logged", (_, succeeded) => {
    const progress = start("error");
    const lines = Array.from({ length: 200_000 }, (_, index) => `${index}`);
    const chunks = Array.from({ length: 200 }, (_, index) => lines.slice(index * 1000, (index + 1) * 1000));
    for (const chunk of chunks) progress.emit(output("stdout", chunk.map((line) => `${line}\n`).join("")));
    progress.emit(output("stdout", "é"));
    for (const event of ran("", "x", succeeded)) progress.emit(event);
    const whole = `[ERROR] stdout:\n${lines.join("\n")}\né\nx\n`;
    expect(progress.written() === (succeeded ? "" : whole)).toBe(true);
  });

  test("ended before another log line", () => {
    const progress = start();
    progress.emit(output("stdout", "half"));
    progress.log.warn("no answer yet");
    expect(progress.written()).toBe("[INFO] stdout:\nhalf\n[WARN] no answer yet\n");
  });
});

test.each([
  ["COPY --from=x is skipped", { rule: "CopyFromSkipped" }, true],
  ["nothing is copied from dist", { rule: "DefaultExclude" }, true],
  ["ADD a.tar: the archive is copied unchanged", { rule: "ArchiveNotUnpacked" }, true],
  ["SHELL is skipped", skippedInstruction("SHELL"), true],
  ["CMD is skipped", skippedInstruction("CMD"), false],
  ["Usage of undefined variable '$A'", { rule: "UndefinedVar" }, false],
])("with -q, whether a warning is shown: %s", (message, warning, isShown) => {
  const progress = start("error");
  progress.emit({ type: "warning", ...warning, message, line: 3 });
  expect(progress.written()).toBe(isShown ? `[WARN] line 3: ${message}\n` : "");
});
