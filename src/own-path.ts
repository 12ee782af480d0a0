import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import { BoughError } from "./errors.ts";
import { errorCode, reasonOf } from "./system-error.ts";

/**
 * Throws for a directory that another user owns or can write to, since bough would follow that user's links there. Returns false
 * if the directory does not exist, which is fine. Allows everything on systems without users (Windows).
 *
 * @param options.isLinkable true to allow this user's own link to a directory
 * @throws BoughError that names the path, its owner or mode, and what to do
 */
export function requireOwnDirectory(path: string, options: { isLinkable: boolean }): boolean {
  const stats = ownedStats(path);
  if (stats === undefined) return false;
  if (stats.isSymbolicLink() && !options.isLinkable) throw refuse(path, "is a symbolic link", "Remove it");
  const target = stats.isSymbolicLink() ? ownedStats(path, statSync) : stats;
  if (target === undefined || !target.isDirectory())
    throw refuse(path, "is not a directory", "Remove it if you do not need it");
  if (canOthersReplace(target.mode) && isSystemWithUsers())
    throw refuse(
      path,
      `can be written to by others (mode 0${(target.mode & 0o7777).toString(8)})`,
      `chmod go-w ${path}`,
    );
  return true;
}

/** True if a group or everyone can write, without the sticky bit, which protects each user's files. */
function canOthersReplace(mode: number): boolean {
  return (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
}

/** Throws for a file of another user, and for a link or a pipe in a file's place. See `requireOwnDirectory`. */
export function requireOwnFile(path: string): void {
  const stats = ownedStats(path);
  if (stats !== undefined && !stats.isFile() && !stats.isDirectory())
    throw refuse(path, "is not a regular file", "Remove it");
}

function ownedStats(
  path: string,
  look: (path: string, options: { throwIfNoEntry: false }) => Stats | undefined = lstatSync,
): Stats | undefined {
  const stats = look(path, { throwIfNoEntry: false });
  const user = process.getuid?.();
  if (stats === undefined || user === undefined || stats.uid === user || stats.uid === 0) return stats;
  throw refuse(path, `belongs to another user (uid ${stats.uid})`, `Remove it, or: chown -R ${user} ${path}`);
}

/** Returns `undefined` if there is nothing. Throws a BoughError if that can't be told, as below a file or another user's directory. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    throw new BoughError(`bough can't keep its state in ${path}: ${reasonOf(error)}`, {
      hint: "Set BOUGH_HOME to another directory.",
      cause: error,
    });
  }
}

/**
 * Throws for a directory of state that another user owns and all can write to, since its owner can replace whatever is made in it.
 * Allows root's: volumes of containers are such directories. Allows all in a user namespace, where other users can't be told from
 * root; bough checks before it enters one.
 */
export function requireOwnState(path: string): void {
  const stats = statsOf(path);
  const user = process.getuid?.();
  if (stats === undefined || user === undefined || stats.uid === user || stats.uid === 0) return;
  if ((stats.mode & 0o002) === 0 || isInUserNamespace()) return;
  throw refuse(
    path,
    `belongs to another user (uid ${stats.uid}), and all can write to it`,
    `chmod o-w ${path}`,
  );
}

function isSystemWithUsers(): boolean {
  return process.getuid !== undefined;
}

function refuse(path: string, what: string, remedy: string): BoughError {
  return new BoughError(`${path} ${what}: bough keeps its state only where no other user can write`, {
    hint: `${remedy}, or set BOUGH_HOME to another directory.`,
  });
}

/** The initial namespace maps all ids to themselves. A kernel without user namespaces has no such file. */
export function isInUserNamespace(): boolean {
  try {
    return !/^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}
