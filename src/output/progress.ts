import type { Emit } from "../build/events.ts";
import { renderBuildEvent } from "./build-log.ts";
import type { Log, LogLevel } from "./log.ts";

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

/** Log lines and nothing else. `logLevel` is the log's. */
export function createPlainProgress(log: Log, logLevel: LogLevel): Progress {
  return {
    log,
    emit(event) {
      for (const { level, text } of renderBuildEvent(event, logLevel)) log[level](text);
    },
    fail: () => false,
    close() {},
  };
}
