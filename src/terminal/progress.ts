import type { Emit } from "../builder/events.ts";
import { visibleLines } from "../visible.ts";
import { type LogLine, renderBuildEvent } from "./build-log.ts";
import { isReported, type Log, type LogLevel } from "./log.ts";
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
}

/** How text goes there: lines of the log, and what a command wrote. */
export interface Writers {
  line(text: string): void;
  output(text: string): void;
}

/** Log lines, and behind them what commands write, as it comes. */
export function createPlainProgress({ log, logLevel, write }: PlainOptions): Progress {
  const output = createStreamedOutput(write.output, (stream, label) => log.info(`${label}${stream}:`));
  const labels = createStepLabels();
  const isStreamed = logLevel === "info" || logLevel === "debug";
  const tell = createTeller(log, logLevel, write);
  return {
    log: {
      debug: (message) => after(output, () => log.debug(message)),
      info: (message) => after(output, () => log.info(message)),
      warn: (message) => after(output, () => log.warn(message)),
      error: (message) => after(output, () => log.error(message)),
    },
    emit(event) {
      labels.note(event);
      const label = event.step === undefined ? "" : labels.labelOf(event);
      if (event.type === "output") {
        if (isStreamed) output.show(event.step, event.chunk, label);
        return;
      }
      const rest = event.type === "ran" && isStreamed ? output.rest(event.step, event) : event;
      for (const line of renderBuildEvent(rest, logLevel, label)) {
        output.endLine();
        tell(line);
      }
    },
    fail: () => false,
    close: () => output.endLine(),
  };
}

/** Logs a line; one that is always told past the log's level, too. */
export function createTeller(log: Log, logLevel: LogLevel, write: Writers): (line: LogLine) => void {
  return ({ level, text, output, isAlways }) => {
    if (isAlways === true && level === "warn" && logLevel === "error")
      write.line(`[WARN] ${visibleLines(text)}\n`);
    else log[level](text);
    if (output !== undefined && isReported(level, logLevel)) write.output(`${output}\n`);
  };
}

function after(output: { endLine(): void }, action: () => void): void {
  output.endLine();
  action();
}
