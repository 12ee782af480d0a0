import {
  chmodSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  type Stats,
  utimesSync,
} from "node:fs";
import { fileTime } from "../../clock.ts";
import { directoryMode } from "../../image/file-mode.ts";

/** Flags for a new file, which must not replace anything, not even a link. */
export const creating = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Returns the mode with which to create a file that will get `mode`: it never allows more than `mode`. */
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

/**
 * Makes a directory of an image, or one that commands see. mkdir(2) alone would apply bough's umask, which must not affect images.
 */
export function makeDirectory(path: string | Buffer, mode = directoryMode): void {
  mkdirSync(path);
  chmodSync(path, mode);
}

/** Makes the upper directory of an overlay, which decides about the overlay's root. */
export function makeUpper(path: string, root: string): void {
  mkdirSync(path);
  setUpperAttributes(path, root);
}

/**
 * Sets an upper directory's attributes, which become those of the image's root. As in Docker, the root has mode 0755 and belongs to root
 * for each command, whatever the layers have and commands did: the archive of a directory from mktemp(1) would otherwise close the image to all
 * other users. The time is that of `root`: no other builder's layers record it, and so equal files make equal layers.
 */
export function setUpperAttributes(path: string, root: string): void {
  setOwnerAndModeAt(path, { uid: 0, gid: 0 }, { mode: directoryMode });
  const { atimeMs, mtimeMs } = lstatSync(root);
  utimesSync(path, fileTime(atimeMs / 1000), fileTime(mtimeMs / 1000));
}

/** Sets owner and mode. The mode comes second, since changing the owner clears setuid and setgid. */
export function setOwnerAndModeAt(
  path: string | Buffer,
  { uid, gid }: { uid: number; gid: number },
  { mode }: { mode: number },
): void {
  lchownSync(path, uid, gid);
  chmodSync(path, mode & 0o7777);
}

/** Returns true for equal owners and modes, which include the types. */
export function hasSameOwnerAndMode(one: Stats, other: Stats): boolean {
  return one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;
}
