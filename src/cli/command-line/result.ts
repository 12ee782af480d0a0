import { lstatSync, type Stats, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { renameOver } from "../../paths/rename-over.ts";
import { reasonOf } from "../../system-error.ts";
import { jsonText } from "../../terminal/json-text.ts";
import {
  renderDelimited,
  renderRecords,
  renderTable,
  type Table,
  type TableStyle,
} from "../../terminal/table.ts";
import { visible, visibleLines } from "../../visible.ts";
import type { Invocation, Surroundings } from "./command.ts";

/** A command's result in its forms, for standard output. */
export interface Result<Json = unknown> {
  /** All that `--quiet` prints, each id on a separate line. */
  id: string | readonly string[];
  /** The result of `-f json`: one object or one array, with stable keys. */
  json: Json;
  /** A table, or a text for people: for `-f csv` and `-f tsv` a line for each record of `json` stands in for it. */
  table: (style: TableStyle) => Table | string;
}

/** Returns the `run` of a command that prints the result of an operation. */
export function printed(
  perform: (invocation: Invocation) => Result | Promise<Result>,
): (invocation: Invocation) => Promise<void> {
  return async (invocation) => printResult(invocation, await perform(invocation));
}

export function printResult(
  { globals, runtime }: Pick<Surroundings, "globals" | "runtime">,
  result: Result,
): void {
  const { stdout, clock } = runtime;
  if (globals.quiet) stdout.write(linesOf(result.id, stdout.isTerminal));
  else if (globals.format === "json") stdout.write(`${jsonText(result.json, { indent: 2 })}\n`);
  else if (globals.format === "table") {
    const { isTerminal, columns, hasColor } = stdout;
    const narrow = { now: clock.now(), ...(isTerminal ? { columns } : {}) };
    const style = { hasColor, ...(globals.wide ? {} : narrow) };
    const shown = result.table(style);
    stdout.write(typeof shown === "string" ? shown : renderTable(shown, style));
  } else {
    const table = result.table({});
    const text =
      typeof table === "string"
        ? renderRecords(result.json, globals.format)
        : renderDelimited(table, globals.format);
    stdout.write(stdout.isTerminal ? visibleLines(text) : text);
  }
}

/** Returns one line for each id, with line breaks in it escaped; for a terminal, all control characters. */
function linesOf(id: Result["id"], isTerminal: boolean): string {
  const ids = typeof id === "string" ? [id] : id;
  return ids
    .filter((each) => each !== "")
    .map((each) => `${isTerminal ? visible(each) : each.replace(/[\r\n]/g, visible)}\n`)
    .join("");
}

/** The path of a file that a command writes, as given by one of its options. */
export interface ResultPlace {
  option: string;
  /** The path as given, for messages. */
  given: string;
  /** Absolute. */
  path: string;
}

/** @throws BoughError of kind `usage` if no file can be written there */
export function findPlace(option: string, given: string, workingDirectory: string): ResultPlace {
  if (given === "") {
    throw usageError(
      `${option} takes the path of a file, not ""`,
      "Name the file to write, or leave the option out.",
    );
  }
  const place = { option, given, path: resolve(workingDirectory, given) };
  const directory = statsOf(dirname(place.path), place);
  if (directory === undefined) throw unusablePlace(place, `there is no directory ${dirname(given)}`);
  if (!directory.isDirectory()) throw unusablePlace(place, `${dirname(given)} is not a directory`);
  // The resolved path has lost the slash.
  if (given.endsWith("/") || given.endsWith(sep))
    throw unusablePlace(place, "the path of a file must not end with a slash");
  if (statsOf(place.path, place)?.isFile() === false) throw unusablePlace(place, "this is not a file");
  return place;
}

export function unusablePlace({ option, given }: ResultPlace, reason: string, cause?: unknown): BoughError {
  return new BoughError(`${option} ${given}: ${reason}`, {
    kind: "usage",
    hint: `Give ${option} the path of a file that can be written and replaced.`,
    cause,
  });
}

/** Returns `undefined` if nothing exists there. */
function statsOf(path: string, place: ResultPlace): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unusablePlace(place, reasonOf(error), error);
  }
}

/** Throws if no file can be written at a place, so that a user learns it before the work, not after it. */
export function requireWritable(place: ResultPlace): void {
  // The test file is removed at once: a COPY might copy it, and a process that is killed would leave it behind.
  const path = temporaryPath(place);
  try {
    // Not empty: an empty file can be written to a full disk.
    writeFileSync(path, "x", { flag: "wx" });
    unlinkSync(path);
  } catch (error) {
    discard(path);
    throw unusablePlace(place, `cannot write a file there: ${reasonOf(error)}`, error);
  }
}

export function removeOld(place: ResultPlace): void {
  try {
    // lstat, since a dangling link must be removed, too.
    if (lstatSync(place.path, { throwIfNoEntry: false }) !== undefined) unlinkSync(place.path);
  } catch (error) {
    throw unusablePlace(place, `cannot remove the existing file: ${reasonOf(error)}`, error);
  }
}

/** Writes files that appear only when they are complete. If one can't be written, none remains. */
export function writeAllOrNone(files: readonly (ResultPlace & { text: string })[]): void {
  const made: string[] = [];
  const attempt = ({ option, given }: ResultPlace, write: () => void) => {
    try {
      write();
    } catch (error) {
      for (const path of made) discard(path);
      throw new BoughError(`cannot write ${option} ${given}: ${reasonOf(error)}`, {
        hint: "The build itself succeeded: its result is on standard output.",
        cause: error,
      });
    }
  };
  const unfinished = files.map((file) => ({ ...file, temporary: temporaryPath(file) }));
  for (const file of unfinished) {
    made.push(file.temporary);
    attempt(file, () => writeFileSync(file.temporary, file.text, { flag: "wx" }));
  }
  for (const file of unfinished) {
    attempt(file, () => renameOver(file.temporary, file.path));
    made.push(file.path);
  }
}

/** Returns a path with a short name: one derived from the file's name could exceed the limit of a name's length. */
function temporaryPath({ path }: ResultPlace): string {
  return join(dirname(path), `.bough-${crypto.randomUUID()}`);
}

function discard(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never created, or its directory is gone. The cause is reported already.
  }
}
