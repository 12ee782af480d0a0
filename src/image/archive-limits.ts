/** Limits that no real archive exceeds, and names that no entry of a layer can have. Archives from elsewhere are not trusted. */
import { BoughError } from "../errors.ts";
import { visible } from "../visible.ts";

/** Without a limit, an endless archive would be read forever. */
export const maxEntries = 2_000_000;
export const maxPathLength = 4096;
/** The size of all files, holes included: several times that of the largest public images. */
export const maxUnpackedBytes = 512 * 1024 ** 3;

/** Returns true for a number that a user or group can have. */
export function isId(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32;
}

/** The prefix of a whiteout, the entry that deletes the file of the rest of its name (OCI image specification). */
export const whiteoutPrefix = ".wh.";

/** Returns true if a layer can't have an entry at this absolute path, since one of its names would be a whiteout. */
export function hasWhiteoutName(path: string): boolean {
  return path.includes(`/${whiteoutPrefix}`);
}

export function isWhiteoutName(name: string | Buffer): boolean {
  const start = typeof name === "string" ? name : name.toString("latin1", 0, whiteoutPrefix.length);
  return start.startsWith(whiteoutPrefix);
}

/** Returns the error for a path with the name of a whiteout. */
export function whiteoutNameError(path: string, hint: string): BoughError {
  return new BoughError(
    `${visible(path)} can't be in a layer: a name that begins with ${whiteoutPrefix} means that a file is deleted`,
    { hint },
  );
}
