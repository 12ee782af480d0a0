import { lstatSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import { type ResultPlace, unusablePlace } from "./result-place.ts";

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
    attempt(file, () => renameSync(file.temporary, file.path));
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
