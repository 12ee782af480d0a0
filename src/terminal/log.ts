import { createConsola, type LogType } from "consola/core";
import { type Message, wording } from "../messages/wording.ts";
import { visibleLines } from "../visible.ts";

/** Log lines, `[INFO] ...`, all on standard error: standard output is for results. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: Message): void;
  error(message: Message): void;
}

export type LogLevel = keyof Log;

const levels = { error: 0, warn: 1, info: 3, debug: 4 } as const;

export function createLog(level: LogLevel, write: (text: string) => void): Log {
  return createReportedLog(level, (type, message) =>
    write(`[${type.toUpperCase()}] ${visibleLines(message)}\n`),
  );
}

/**
 * Creates a log that passes messages of at least `level` to `report`. Consola is used only for its levels: streams, colours and
 * the form of lines are decided elsewhere, with the live view.
 */
export function createReportedLog(level: LogLevel, report: (level: LogLevel, message: string) => void): Log {
  const consola = createConsola({
    level: levels[level],
    // Consola's own reporters depend on environment variables.
    reporters: [{ log: ({ type, args }) => report(isLogLevel(type) ? type : "info", args.join(" ")) }],
    throttle: 0,
  });
  return {
    debug: (message) => consola.debug(message),
    info: (message) => consola.info(message),
    warn: (message) => consola.warn(message),
    error: (message) => consola.error(message),
  };
}

/** Returns a log whose messages say what they are about. */
export function prefixLog(log: Log, prefix: string): Log {
  return {
    debug: (message) => log.debug(`${prefix}: ${message}`),
    info: (message) => log.info(`${prefix}: ${message}`),
    warn: (message) => log.warn(wording`${prefix}: ${message}`),
    error: (message) => log.error(wording`${prefix}: ${message}`),
  };
}

function isLogLevel(type: LogType): type is LogLevel {
  return Object.hasOwn(levels, type);
}
