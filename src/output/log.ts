import { createConsola, type LogType } from "consola";

/** Log lines for people, `[INFO] ...`, all on standard error: standard output is for results. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

const levels = { error: 0, warn: 1, info: 3, debug: 4 } as const;

const prefixes: Partial<Record<LogType, string>> = {
  error: "[ERROR]",
  warn: "[WARN]",
  info: "[INFO]",
  debug: "[DEBUG]",
};

export function createLog(level: keyof typeof levels, write: (text: string) => void): Log {
  const consola = createConsola({
    level: levels[level],
    // Consola's own reporters decide by environment variables what they print, and where.
    reporters: [{ log: ({ type, args }) => write(`${prefixes[type] ?? "[INFO]"} ${args.join(" ")}\n`) }],
    throttle: 0,
  });
  return {
    debug: (message) => consola.debug(message),
    info: (message) => consola.info(message),
    warn: (message) => consola.warn(message),
    error: (message) => consola.error(message),
  };
}
