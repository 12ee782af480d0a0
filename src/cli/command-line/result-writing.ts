import { lstatSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import { type ResultPlace, unusablePlace } from "./result-place.ts";

/** What would keep the file from being written in the end is better known before the work than after it. */
export function requireWritable(place: ResultPlace): void {
  // Not kept until then: it would be one of the files that a COPY takes, and left behind by a process that is killed.
  const path = temporaryPath(place);
  try {
    // A full disk still takes an empty file.
    writeFileSync(path, "x", { flag: "wx" });
    unlinkSync(path);
  } catch (error) {
    discard(path);
    throw unusablePlace(place, `no file can be written there: ${reasonOf(error)}`, error);
  }
}

export function removeOld(place: ResultPlace): void {
  try {
    // A link that leads nowhere is there, too.
    if (lstatSync(place.path, { throwIfNoEntry: false }) !== undefined) unlinkSync(place.path);
  } catch (error) {
    throw unusablePlace(place, `what is there cannot be removed: ${reasonOf(error)}`, error);
  }
}

/** Whoever sees one of the files sees all of it; where one of them fails there is none. */
export function writeAllOrNone(files: readonly (ResultPlace & { text: string })[]): void {
  const made: string[] = [];
  const attempt = ({ option, given }: ResultPlace, write: () => void) => {
    try {
      write();
    } catch (error) {
      for (const path of made) discard(path);
      throw new BoughError(`cannot write ${option} ${given}: ${reasonOf(error)}`, {
        hint: "The work itself is done: its result is on standard output.",
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

/** Short whatever the file is called: there is a limit to a name's length. */
function temporaryPath({ path }: ResultPlace): string {
  return join(dirname(path), `.bough-${crypto.randomUUID()}`);
}

function discard(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It has not come to be, or its directory is gone; why is told already.
  }
}
