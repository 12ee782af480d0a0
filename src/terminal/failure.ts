import { BoughError, exitCodes, messageOf } from "../errors.ts";
import { stateFailure } from "../state-failure.ts";
import { truncate, visibleLines } from "../visible.ts";
import { jsonText } from "./json-text.ts";

/** Returns the text for standard error and the exit code for anything that was thrown. */
export function describeFailure(
  error: unknown,
  format: "table" | "json" | "csv" | "tsv",
): { text: string; exitCode: number } {
  const known = failureOf(error);
  if (format === "json") {
    const body = { error: { code: known.kind, message: cutWords(known.message), hint: known.hint ?? null } };
    return { text: `${jsonText(body)}\n`, exitCode: known.exitCode };
  }
  const hint = known.hint === undefined ? "" : `\n${known.hint}`;
  return {
    text: `[ERROR] ${visibleLines(cutWords(known.message + hint))}\n`,
    exitCode: exitCodes[known.kind],
  };
}

/** Cuts words that are longer than any path, such as a pattern or a reference of 50 kB, which would fill the screen. */
function cutWords(text: string): string {
  return text.replace(/\S{5000,}/g, (word) => truncate(word, 200));
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
