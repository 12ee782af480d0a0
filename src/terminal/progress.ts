import type { BuildEvent, Emit } from "../builder/events.ts";
import { visibleLines } from "../visible.ts";
import { type LogLine, renderBuildEvent } from "./build-log.ts";
import { createHeldOutput, type SpoolFile } from "./held-output.ts";
import type { Log, LogLevel } from "./log.ts";
import { createStepLabels } from "./step-count.ts";
import { createStreamedOutput } from "./streamed-output.ts";

/** How a build is shown while it goes on. */
export interface Progress {
  /** For everything that is no event of the build. */
  log: Log;
  emit: Emit;
  /** What the build has ended with. True: that is told, and must not be said again. */
  fail(error: unknown): boolean;
  /** Nothing is drawn any more, and nothing is left to be erased. */
  close(): void;
}

export interface PlainOptions {
  log: Log;
  /** The log's. */
  logLevel: LogLevel;
  /** To where the log goes. */
  write: Writers;
  /** For output that is shown later. */
  openSpoolFile: () => SpoolFile;
}

/** How text goes there: lines of the log, and what a command wrote. */
export interface Writers {
  line(text: string): void;
  output(text: string): void;
}

/** Log lines, and behind them what commands write: as it comes, or, where the log is to show errors only, with a failure. */
export function createPlainProgress({ log, logLevel, write, openSpoolFile }: PlainOptions): Progress {
  const output = createStreamedOutput(write.output, (stream, label) => log.info(`${label}${stream}:`));
  const held = createHeldOutput({ log, logLevel, write: write.output, openSpoolFile });
  const labels = createStepLabels();
  const isStreamed = logLevel === "info" || logLevel === "debug";
  const tell = createLineLogger(log, logLevel, write);

  function show(event: Extract<BuildEvent, { type: "output" | "ran" }>, label: string): void {
    const { step } = event;
    if (event.type === "ran") {
      output.end(step, label);
      held.tell(step, event, label);
    } else if (isStreamed) output.show(step, event.chunk, label, event.isRest);
    else held.hold(step, event.chunk);
  }

  return {
    log: {
      debug: (message) => after(output, () => log.debug(message)),
      info: (message) => after(output, () => log.info(message)),
      warn: (message) => after(output, () => log.warn(message)),
      error: (message) => after(output, () => log.error(message)),
    },
    emit(event) {
      labels.note(event);
      if (event.type === "output" || event.type === "ran") return show(event, labels.labelOf(event));
      for (const line of renderBuildEvent(event)) {
        output.endLine();
        tell(line);
      }
    },
    fail: () => false,
    close() {
      output.endLine();
      held.close();
    },
  };
}

/** Logs a line; one that is always told past the log's level, too. */
export function createLineLogger(log: Log, logLevel: LogLevel, write: Writers): (line: LogLine) => void {
  return ({ level, text, isAlways }) => {
    if (isAlways === true && level === "warn" && logLevel === "error")
      write.line(`[WARN] ${visibleLines(text)}\n`);
    else log[level](text);
  };
}

function after(output: { endLine(): void }, action: () => void): void {
  output.endLine();
  action();
}
