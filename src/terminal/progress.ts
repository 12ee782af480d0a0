import type { BuildEvent, Emit } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import { visibleLines } from "../visible.ts";
import { type LogLine, renderBuildEvent } from "./build-log.ts";
import type { Log, LogLevel } from "./log.ts";
import { createHeldOutput, type SpoolFile } from "./output/held-output.ts";
import { createLabelledOutput } from "./output/labelled-output.ts";
import { createStreamedOutput } from "./output/streamed-output.ts";
import { createStepLabels } from "./step-count.ts";

/** How a build is shown while it goes on. */
export interface Progress {
  /** Takes everything that is not an event of the build. */
  log: Log;
  emit: Emit;
  /** What the build has ended with. True: that is told, and must not be said again. */
  fail(error: unknown): boolean;
  /** Nothing is drawn any more, and nothing is left to be erased. */
  close(): void;
}

interface PlainOptions {
  log: Log;
  clock: Clock;
  /** The log's. */
  logLevel: LogLevel;
  /** Writes to where the log goes. */
  write: Writers;
  /** Opens a file for output that is shown later. */
  openSpoolFile: () => SpoolFile;
}

/** How text goes there: lines of the log, and what a command wrote. */
export interface Writers {
  line(text: string): void;
  output(text: string): void;
}

/**
 * Log lines, and behind them what commands write: as it comes, or, where the log is to show errors only, with a failure.
 * Where stages are built at once, each line says whose it is.
 */
export function createPlainProgress({ log, clock, logLevel, write, openSpoolFile }: PlainOptions): Progress {
  const labels = createStepLabels();
  const output = createStreamedOutput(write.output, (stream) => log.info(`${stream}:`));
  const labelled = createLabelledOutput({
    ...{ write: write.output, clock },
    isShared: () => labels.running > 1,
  });
  const held = createHeldOutput({ log, logLevel, write: write.output, openSpoolFile });
  const isStreamed = logLevel === "info" || logLevel === "debug";
  const logLine = createLineLogger(log, logLevel, write);

  function show(event: Extract<BuildEvent, { type: "output" | "ran" }>): void {
    const { step } = event;
    const label = labels.labelOf(event);
    if (event.type === "ran") {
      labelled.end(step);
      output.end(step);
      held.tell(step, event, label);
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
      for (const line of renderBuildEvent(event, labels.labelOf(event), labels.running))
        after(() => logLine(line));
    },
    fail: () => false,
    close() {
      labelled.close();
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
