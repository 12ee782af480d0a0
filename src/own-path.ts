import { lstatSync, type Stats, statSync } from "node:fs";
import { BoughError } from "./errors.ts";

/**
 * Refuses a directory that somebody else can put things into, or has put there: whoever works in it would follow that one's
 * links. One that is not there yet is as good as one's own. Systems without users (Windows) refuse nothing.
 * Returns whether there is one.
 *
 * @param options.isLinkable a link to a directory will do, if it is one's own
 * @throws BoughError that names the path, its owner or mode, and what to do
 */
export function requireOwnDirectory(path: string, options: { isLinkable: boolean }): boolean {
  const stats = ownedStats(path);
  if (stats === undefined) return false;
  if (stats.isSymbolicLink() && !options.isLinkable) throw refuse(path, "is a symbolic link", "Remove it");
  const target = stats.isSymbolicLink() ? ownedStats(path, statSync) : stats;
  if (target === undefined || !target.isDirectory())
    throw refuse(path, "is not a directory", "Remove it, if it is of no use");
  if (canOthersReplace(target.mode) && isSystemWithUsers())
    throw refuse(
      path,
      `can be written to by others (mode 0${(target.mode & 0o7777).toString(8)})`,
      `chmod go-w ${path}`,
    );
  return true;
}

/** Writable for a group or for everybody, without the sticky bit that leaves each to his own. */
function canOthersReplace(mode: number): boolean {
  return (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
}

/** Refuses what would be followed or waited for in a file's place, and somebody else's file. As `requireOwnDirectory`. */
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

function isSystemWithUsers(): boolean {
  return process.getuid !== undefined;
}

function refuse(path: string, what: string, remedy: string): BoughError {
  return new BoughError(`${path} ${what}: bough keeps its state where nobody else can put anything`, {
    hint: `${remedy}, or set BOUGH_HOME to another directory.`,
  });
}
