import { BoughError } from "./errors.ts";
import { isDiskFullError } from "./system-error.ts";

/** Returns an error for users if bough's state files failed; `undefined` for anything else. */
export function stateFailure(error: unknown): BoughError | undefined {
  if (!isFromSqlite(error)) return undefined;
  const kind = /^SQLITE_[A-Z]+/.exec(error.code)?.[0] ?? "";
  // The state is fine: bough was about to write what contradicts it, which is a bug.
  if (kind === "SQLITE_CONSTRAINT") return undefined;
  const message = isDiskFullError(error)
    ? "no space left on the disk that holds bough's state"
    : `bough's state can't be used: ${error.message}`;
  return new BoughError(message, {
    hint: isDiskFullError(error)
      ? `Free some space on the disk of ${place}.`
      : (hints[kind] ?? `Check the directory of its state: ${place}.`),
    cause: error,
  });
}

/** True if it is an error of bough's own state on a full disk, or wrapped around one. */
export function isStateDiskFull(error: unknown): boolean {
  if (isFromSqlite(error)) return isDiskFullError(error);
  return error instanceof Error && isStateDiskFull(error.cause);
}

/** Performs a write of bough's own state. Returns `undefined` if the disk is full: then another result or error matters more. */
export function unlessStateDiskFull<Result>(write: () => Result, onFull?: () => void): Result | undefined {
  try {
    return write();
  } catch (error) {
    if (!isStateDiskFull(error)) throw error;
    onFull?.();
    return undefined;
  }
}

/** The name identifies it, not the class: a command that needs no database does not load SQLite. */
function isFromSqlite(error: unknown): error is Error & { code: string } {
  return error instanceof Error && error.name === "SQLiteError" && "code" in error;
}

const place =
  process.platform === "win32"
    ? "%BOUGH_HOME%, else %LOCALAPPDATA%\\bough"
    : "$BOUGH_HOME, else ~/.local/state/bough";

const hints: Record<string, string> = {
  SQLITE_READONLY: `${place}, must be writable.`,
  SQLITE_BUSY: "Another bough process is using it: try again when it has ended.",
  SQLITE_CORRUPT:
    "A state file is damaged: the next `bough build` sets it aside and starts with an empty one.",
  SQLITE_NOTADB:
    "A state file is damaged: the next `bough build` sets it aside and starts with an empty one.",
  SQLITE_IOERR: `The disk that holds ${place}, can't be read or written, or is full.`,
};
