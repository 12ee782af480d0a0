/** How contexts are removed that no process uses. */
import { existsSync, mkdirSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { namesIn, removeTree } from "../../left-behind.ts";
import { isLocked, lockFile } from "../../lock-file.ts";
import { errorCode } from "../../system-error.ts";

/** The directory with a lock file of each process that uses a context. */
export const users = ".users";
/** The directory with a lock file of each process that is about to remove a context. */
export const removers = ".removers";
/** Names of directories that a process is making or removing: a dot, and the name of its lock file in there. */
export const unfinished = /^\./;

/** Removes an unused context. Only one process at a time does so. If it is killed, the context is either complete or gone. */
export function removeUnused(path: string): void {
  const own = crypto.randomUUID();
  const removal = join(path, removers, own);
  let lock: Disposable;
  try {
    // An incomplete context may lack the directory.
    makeUnlessThere(join(path, removers));
    lock = lockFile(removal);
  } catch {
    return;
  }
  const isFree = !hasLocked(join(path, users)) && !hasLocked(join(path, removers), own);
  // If `removal` is gone, another context has taken the place of the one that was checked.
  if (isFree && existsSync(removal)) removeAside(path, own);
  lock[Symbol.dispose]();
}

/** Moves a context aside and removes it. If it can't be moved, it stays: that is no reason to fail. */
function removeAside(path: string, own: string): void {
  const aside = join(path, "..", `.${own}`);
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  removeTree(aside);
}

/** Removes what killed processes have left of contexts in a group's directory, and the directory if it is empty. */
export function removeRest(directory: string): void {
  // As carefully as a finished context: the process that makes one may lock it just now.
  for (const name of namesIn(directory)) if (unfinished.test(name)) removeUnused(join(directory, name));
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty.
  }
}

/** True if a process that has locked a file in the directory is alive. The file `own` does not count. */
export function hasLocked(directory: string, own?: string): boolean {
  return namesIn(directory).some((name) => name !== own && isLocked(join(directory, name)));
}

function makeUnlessThere(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}
