import { BoughError, exitCodes, messageOf } from "../errors.ts";
import { visibleLines } from "../visible.ts";
import { jsonText } from "./json-text.ts";

/** Returns the text for standard error and the exit code for anything that was thrown. */
export function describeFailure(
  error: unknown,
  format: "table" | "json",
): { text: string; exitCode: number } {
  const known = failureOf(error);
  if (format === "json") {
    const body = { error: { code: known.kind, message: known.message, hint: known.hint ?? null } };
    return { text: `${jsonText(body)}\n`, exitCode: known.exitCode };
  }
  const hint = known.hint === undefined ? "" : `\n${known.hint}`;
  return { text: `[ERROR] ${visibleLines(known.message + hint)}\n`, exitCode: exitCodes[known.kind] };
}

/** Returns anything that was thrown as an error for users. */
export function failureOf(error: unknown): BoughError {
  return error instanceof BoughError ? error : (stateFailure(error) ?? defect(error));
}

function defect(error: unknown): BoughError {
  return new BoughError(`bough itself failed: ${messageOf(error)}`, {
    hint: "This is a bug in bough: please report it with the command line and the output of -L debug.",
    cause: error,
  });
}

/** Returns an error for users if bough's state files failed; `undefined` for anything else. */
function stateFailure(error: unknown): BoughError | undefined {
  // It is known by name, since a command that needs no database does not load SQLite.
  if (!(error instanceof Error) || error.name !== "SQLiteError") return undefined;
  const code = "code" in error ? String(error.code) : "";
  const kind = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? "";
  return new BoughError(`bough's state can't be used: ${error.message}`, {
    hint: hints[kind] ?? "Check the directory of its state: $BOUGH_HOME, else ~/.local/state/bough.",
    cause: error,
  });
}

const hints: Record<string, string> = {
  SQLITE_FULL: "The disk that holds $BOUGH_HOME, else ~/.local/state/bough, is full.",
  SQLITE_READONLY: "$BOUGH_HOME, else ~/.local/state/bough, must be writable.",
  SQLITE_BUSY: "Another bough process is using it: try again when it has ended.",
  SQLITE_CORRUPT:
    "A state file is damaged: the next `bough build` sets it aside and starts with an empty one.",
  SQLITE_NOTADB:
    "A state file is damaged: the next `bough build` sets it aside and starts with an empty one.",
  SQLITE_IOERR:
    "The disk that holds $BOUGH_HOME, else ~/.local/state/bough, can't be read or written, or is full.",
};
