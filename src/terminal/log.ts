import { createConsola, type LogType } from "consola/core";
import { commandLineWords, type Message, render, type WordsOf, wording } from "../messages/wording.ts";
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

export function createLog(level: LogLevel, write: (text: string) => void, wordsOf?: WordsOf): Log {
  const report = (type: LogLevel, message: string) =>
    write(`[${type.toUpperCase()}] ${visibleLines(message)}\n`);
  return createReportedLog(level, report, wordsOf);
}

/**
 * Creates a log that passes messages of at least `level` to `report`. Consola is used only for its levels: streams, colours and
 * the form of lines are decided elsewhere, with the live view.
 */
export function createReportedLog(
  level: LogLevel,
  report: (level: LogLevel, message: string) => void,
  wordsOf: WordsOf = commandLineWords,
): Log {
  const consola = createConsola({
    level: levels[level],
    // Consola's own reporters depend on environment variables.
    reporters: [{ log: ({ type, args }) => report(isLogLevel(type) ? type : "info", args.join(" ")) }],
    throttle: 0,
  });
  return {
    debug: (message) => consola.debug(message),
    info: (message) => consola.info(message),
    warn: (message) => consola.warn(render(message, wordsOf) ?? ""),
    error: (message) => consola.error(render(message, wordsOf) ?? ""),
  };
}

/** Returns a log that puts a prefix, such as a target, before each message. */
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
