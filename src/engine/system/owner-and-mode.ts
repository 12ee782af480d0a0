import { constants, fchmodSync, fchownSync, fstatSync, type Stats } from "node:fs";

/** Flags for a new file, which must not replace anything, not even a link. */
export const creating = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Returns the mode to create a file with that will get `mode`. Nobody may do more with the file before than after. */
export function firstMode(mode: number): number {
  return mode & 0o777;
}

/**
 * Sets owner and mode of an open file that was just created. It looks first whether the file has them: most have, and each change
 * takes the file system twice as long as looking.
 */
export function setOwnerAndMode(
  descriptor: number,
  { uid, gid, mode }: { uid: number; gid: number; mode: number },
): void {
  const stats = fstatSync(descriptor);
  const isOwned = stats.uid === uid && stats.gid === gid;
  if (!isOwned) fchownSync(descriptor, uid, gid);
  // The owner comes first, since changing it clears setuid and setgid.
  if (!isOwned || (stats.mode & 0o7777) !== mode) fchmodSync(descriptor, mode);
}

/** True for equal owners and modes, which include the types. */
export function hasSameOwnerAndMode(one: Stats, other: Stats): boolean {
  return one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;
}
