import { BoughError, exitCodes, messageOf, primaryOf } from "../errors.ts";
import { commandLineWords, render, type WordsOf } from "../messages/wording.ts";
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

/**
 * Returns an error in the form of buildx: excerpts and hints first, and the failure in the last line, since docker's actions for GitHub
 * show only that. `##[` would begin a command of GitHub's there.
 */
export function describeForDocker(
  error: unknown,
  wordsOf: WordsOf = commandLineWords,
): { details: string; reason: string } {
  const { wording, hint: given } = failureOf(error);
  const message = render(wording, wordsOf) ?? "";
  const hint = given === undefined ? undefined : render(given, wordsOf);
  const [headline = "", ...excerpt] = cutWords(message).split("\n");
  const reasonOf = (text: string) => `ERROR: ${visibleLines(text).replaceAll("##[", "## [")}\n`;
  // Docker's usage comes last there, too.
  if (hint?.startsWith("\n")) return { details: "", reason: reasonOf(`${headline}\n${hint}`) };
  const advice = hint?.split("\n") ?? [];
  if (excerpt.length === 0 && advice.length < 2) {
    const end = /[.?!]$/.test(headline) || hint === undefined ? "" : ".";
    return { details: "", reason: reasonOf([`${headline}${end}`, ...advice].join(" ")) };
  }
  // Lines that are not indented are further errors: the first one's excerpt must follow it.
  const lines = excerpt.some((line) => /^\S/.test(line)) ? [headline, ...excerpt] : excerpt;
  return { details: `${visibleLines([...lines, ...advice].join("\n"))}\n`, reason: reasonOf(headline) };
}

/** Cuts words that are longer than any path, such as a pattern of 50 kB, which would fill the screen. */
function cutWords(text: string): string {
  return text.replace(/\S{5000,}/g, (word) => truncate(word, 200));
}

/** Returns the exit code that buildx has for an error that is not one of its options. */
export function exitCodeOfDocker(error: unknown): number {
  return failureOf(error).kind === "interrupted" ? 130 : 1;
}

/** Returns anything that was thrown as an error for users. */
export function failureOf(error: unknown): BoughError {
  const primary = primaryOf(error);
  return primary instanceof BoughError ? primary : (stateFailure(primary) ?? defect(primary));
}

function defect(error: unknown): BoughError {
  return new BoughError(`bough itself failed: ${messageOf(error)}`, {
    hint: "This is a bug in bough: please report it with the command line and the output of -L debug.",
    cause: error,
  });
}
