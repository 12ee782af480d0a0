import { type Stats, statSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";

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
    throw new BoughError(`${option} takes the path of a file, not ""`, {
      kind: "usage",
      hint: "Name the file to write, or leave the option out.",
    });
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
