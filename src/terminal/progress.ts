import type { BuildEvent, Emit } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import { commandLineWords, render, type WordsOf } from "../messages/wording.ts";
import type { OutputChunk } from "../service/service.ts";
import { visibleLines } from "../visible.ts";
import { type LogLine, renderBuildEvent } from "./build-log.ts";
import type { Log, LogLevel } from "./log.ts";
import { createHeldOutput, type SpoolFile } from "./output/held-output.ts";
import { createStepEnds } from "./step-ends.ts";
import { createStepLabels } from "./step-row.ts";

/** Shows a running build. */
export interface Progress {
  /** The log for messages that are not events of the build. */
  log: Log;
  emit: Emit;
  /** Shows the error that ended the build. Returns true if it did, so that the caller must not show it again. */
  fail(error: unknown): boolean;
  /** Ends the display, and leaves nothing to erase. */
  close(): void;
}

interface PlainOptions {
  log: Log;
  clock: Clock;
  /** The level of `log`. */
  logLevel: LogLevel;
  /** Write to the log's stream. */
  write: Writers;
  /** Opens a file for output that is shown later. */
  openSpoolFile: () => SpoolFile;
  /** The words for options and commands in messages. */
  wordsOf?: WordsOf | undefined;
}

/** Functions that write log lines, and output of commands. */
export interface Writers {
  line(text: string): void;
  output(text: string): void;
}

/**
 * Shows a build as log lines with the output of commands: at once, or, if the log shows only errors, after a failure. If several stages
 * are built at once, each line has its step's label.
 */
export function createPlainProgress({
  log,
  clock,
  logLevel,
  write,
  openSpoolFile,
  wordsOf,
}: PlainOptions): Progress {
  const labels = createStepLabels();
  const ends = createStepEnds(clock);
  const output = createStreamedOutput(write.output, (stream) => log.info(`${stream}:`));
  const labelled = createLabelledOutput({
    ...{ write: write.output, clock },
    isShared: () => labels.running > 1,
  });
  const held = createHeldOutput({ log, logLevel, write: write.output, openSpoolFile });
  const isStreamed = logLevel === "info" || logLevel === "debug";
  const logLine = createLineLogger(log, logLevel, write, wordsOf);

  function show(event: Extract<BuildEvent, { type: "output" | "ran" }>): void {
    const { step } = event;
    const label = labels.labelOf(event);
    if (event.type === "ran") {
      labelled.end(step);
      output.end(step);
      held.flush(step, event, label);
    } else if (!isStreamed) held.hold(step, event.chunk);
    else if (label !== "") labelled.show(step, event.chunk, label);
    else output.show(step, event.chunk, event.isRest);
  }

  function endLine(): void {
    labelled.endLine();
    output.endLine();
  }

  function after(action: () => void): void {
    endLine();
    action();
  }

  return {
    log: {
      debug: (message) => after(() => log.debug(message)),
      info: (message) => after(() => log.info(message)),
      warn: (message) => after(() => log.warn(message)),
      error: (message) => after(() => log.error(message)),
    },
    emit(event) {
      labels.note(event);
      if (event.type === "output" || event.type === "ran") return show(event);
      const end = ends.note(event);
      if (event.type !== "step-failed" || end === undefined)
        for (const line of renderBuildEvent(event, labels.labelOf(event), labels.running))
          after(() => logLine(line));
      // The error of a failed step comes once the others have ended.
      const level = event.type === "step-failed" && labels.running > 0 ? "warn" : "info";
      if (end !== undefined) after(() => log[level](end));
    },
    fail: () => false,
    close() {
      labelled.close();
      output.endLine();
      held.close();
    },
  };
}

/** Creates a function that logs lines, those with `isAlways` at any log level. */
export function createLineLogger(
  log: Log,
  logLevel: LogLevel,
  write: Writers,
  wordsOf: WordsOf = commandLineWords,
): (line: LogLine) => void {
  return ({ level, text, isAlways }) => {
    if (isAlways === true && level === "warn" && logLevel === "error")
      write.line(`[WARN] ${visibleLines(render(text, wordsOf) ?? "")}\n`);
    else if (level === "warn" || level === "error") log[level](text);
    else log[level](String(text));
  };
}

type StreamName = OutputChunk["stream"];

/** Shows output of running commands at once, between log lines. */
interface StreamedOutput {
  /**
   * Shows both streams of a step in the order of writing, after one header if possible. `isRest`: the output came after the
   * command's end, so its order is unknown.
   */
  show(step: number, chunk: OutputChunk, isRest?: boolean): void;
  /** Ends a step's output. */
  end(step: number): void;
  /** Ends an unfinished line, so that the log continues on a new one. */
  endLine(): void;
}

/** Creates a display that writes output unchanged, after the headers that `announce` prints. */
function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: StreamName) => void,
): StreamedOutput {
  /** The step whose output was written last, and its streams that are announced. */
  let speaker: { step: number; announced: Set<StreamName> } | undefined;
  let isAtLineStart = true;

  function endLine(): void {
    if (!isAtLineStart) write("\n");
    isAtLineStart = true;
  }

  return {
    endLine,
    show(step, { stream, text }, isRest = false) {
      if (text === "") return;
      if (speaker?.step !== step || isRest) speaker = { step, announced: new Set() };
      const { announced } = speaker;
      // Standard error after `stdout:` gets no header, which would be repeated at every change.
      if (!announced.has(stream) && !(stream === "stderr" && announced.has("stdout"))) {
        endLine();
        announce(stream);
      }
      announced.add(stream);
      write(text);
      isAtLineStart = text.endsWith("\n");
    },
    end(step) {
      if (speaker?.step === step) speaker = undefined;
      endLine();
    },
  };
}

/** Shows output of several stages: whole lines with their step's label, in the order in which lines end. */
interface LabelledOutput {
  show(step: number, chunk: OutputChunk, label: string): void;
  /** Shows the rest of a step's last lines when its command has ended. */
  end(step: number): void;
  /** Ends an unfinished line, so that the log continues on a new one. */
  endLine(): void;
  /** Shows the rest of all lines. */
  close(): void;
}

interface LabelledOutputOptions {
  write: (text: string) => void;
  clock: Clock;
  /** True while more than one step runs. */
  isShared: () => boolean;
}

/** An unfinished line, such as a prompt, is shown after this time if no other step runs. */
const maxHoldMilliseconds = 500;
/** A longer line is shown before its end: a progress bar that is redrawn by carriage returns is one endless line. */
const maxHeld = 4096;

interface HeldLine {
  label: string;
  text: string;
  since: number;
}

function createLabelledOutput({ write, clock, isShared }: LabelledOutputOptions): LabelledOutput {
  /** The beginnings of lines, by step and stream. */
  const held = new Map<string, HeldLine>();
  const closing = new AbortController();
  let isWaiting = false;
  /** The line written last, if it is unfinished. */
  let open: { key: string; endsInReturn: boolean } | undefined;

  function endLine(): void {
    if (open !== undefined) write("\n");
    open = undefined;
  }

  function print(key: string, label: string, text: string): void {
    if (open?.key !== key) endLine();
    const isAtStart = open === undefined || (open.endsInReturn && !text.startsWith("\n"));
    write(`${isAtStart ? label : ""}${labelLines(text, label)}`);
    open = text.endsWith("\n") ? undefined : { key, endsInReturn: text.endsWith("\r") };
  }

  function flush(key: string): void {
    const line = held.get(key);
    held.delete(key);
    if (line !== undefined) print(key, line.label, line.text);
  }

  async function waitAndFlush(): Promise<void> {
    isWaiting = true;
    while (held.size > 0) {
      await clock.sleep(maxHoldMilliseconds, closing.signal);
      const isDue = (since: number) => since <= clock.now() - maxHoldMilliseconds;
      for (const [key, { since }] of [...held]) if (isDue(since) && !isShared()) flush(key);
    }
    isWaiting = false;
  }

  return {
    endLine,
    show(step, { stream, text }, label) {
      const key = keyOf(step, stream);
      const all = (held.get(key)?.text ?? "") + text;
      held.delete(key);
      const end = all.lastIndexOf("\n") + 1;
      if (end > 0) print(key, label, all.slice(0, end));
      const rest = all.slice(end);
      if (rest === "") return;
      if (open?.key === key || rest.length > maxHeld) return print(key, label, rest);
      held.set(key, { label, text: rest, since: clock.now() });
      // It rejects only when the output is closed.
      if (!isWaiting) waitAndFlush().catch(() => undefined);
    },
    end(step) {
      for (const stream of ["stdout", "stderr"] as const) flush(keyOf(step, stream));
      endLine();
    },
    close() {
      closing.abort();
      for (const key of [...held.keys()]) flush(key);
      endLine();
    },
  };
}

function keyOf(step: number, stream: OutputChunk["stream"]): string {
  return `${step} ${stream}`;
}

/** Adds the label to each line, and after each carriage return, since text after it overwrites the label. */
function labelLines(text: string, label: string): string {
  return text.replace(/\n(?!$)|\r(?!\n|$)/g, (end) => end + label);
}
