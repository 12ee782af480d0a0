/** What no real archive exceeds, and which names no layer can have. Archives from elsewhere are not trusted. */
import { BoughError } from "../errors.ts";
import { visible } from "../visible.ts";

/** An endless archive would be read forever. */
export const maxEntries = 2_000_000;
export const maxPathLength = 4096;
/** Bytes of all files, holes included: several times the size of the largest public images. */
export const maxUnpackedBytes = 512 * 1024 ** 3;

/** Returns true for a number that a user or group can have. */
export function isId(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32;
}

/** The prefix of a deleted file's mark (OCI image specification). */
export const whiteoutPrefix = ".wh.";

/** Returns true if a layer can't have an entry at this path: one of its names would be the mark of a deleted file. */
export function hasMarkName(path: string): boolean {
  return path.includes(`/${whiteoutPrefix}`);
}

export function isMarkName(name: string | Buffer): boolean {
  const start = typeof name === "string" ? name : name.toString("latin1", 0, whiteoutPrefix.length);
  return start.startsWith(whiteoutPrefix);
}

/** Returns the error for a path with such a name. */
export function markNameError(path: string, hint: string): BoughError {
  return new BoughError(
    `${visible(path)} can't be in a layer: a name that begins with ${whiteoutPrefix} means that a file is deleted`,
    { hint },
  );
}
