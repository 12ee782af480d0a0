import { existsSync, mkdirSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { bootId, isLocked, lockFile } from "../../lock-file.ts";
import { readOptional } from "../../open-for-reading.ts";
import { requireOwnDirectory } from "../../own-path.ts";
import { listNames, removeTree } from "../../remove-tree.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { contextGroupOf } from "./context-group.ts";

/**
 * The storage of fetched contexts. Each is in the directory of its group: of a build session, or of a `--build-context` in it. No
 * context is removed while a process that uses it lives. Its directory is never renamed, which Windows refuses while a file in it
 * is open: instead, a file that is written last contains the name.
 */
export interface KeptContexts {
  /** Returns a context, which is not removed until it is disposed of; `undefined` if there is none. */
  find(group: string, name: string): HeldContext | undefined;
  /** Creates an empty directory for a context. Disposing of it removes it, unless `keep` was called. */
  begin(group: string): StartedContext;
}

export interface HeldContext extends Disposable {
  path: string;
}

interface StartedContext extends Disposable {
  path: string;
  /**
   * Gives the context its name, by which `find` finds it from now on: its commit or its digest. Returns the context; if there is one
   * with this name already, returns that.
   */
  keep(name: string): HeldContext;
}

/** The maximum number of contexts of a group: few users alternate between more branches. */
const maxKept = 4;
const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** The name of the file that marks a complete context: see `completed`. */
const completeMarker = ".complete";
/** The maximum number of attempts to lock a directory, which other processes may remove first. */
const maxAttempts = 100;

/** @param parent bough's own directory, which may not exist */
export function openKeptContexts(parent: string, clock: Pick<Clock, "now">): KeptContexts {
  const root = join(parent, "contexts");

  /** Marks a context as used now. */
  function hold(path: string, lock: Disposable): HeldContext {
    const now = new Date(clock.now());
    utimesSync(path, now, now);
    return { path, [Symbol.dispose]: () => lock[Symbol.dispose]() };
  }

  function find(group: string, name: string): HeldContext | undefined {
    const directory = join(root, group);
    for (const id of listNames(directory).sort()) {
      const path = join(directory, id);
      const held = isComplete(path, name) ? holdIfThere(path, name) : undefined;
      if (held !== undefined) return held;
    }
    return undefined;
  }

  function holdIfThere(path: string, name: string): HeldContext | undefined {
    let lock: Disposable | undefined;
    try {
      lock = lockFile(join(path, users, crypto.randomUUID()));
      // A process that removes the context locks a file, too, and then looks for users: one of the two sees the other, and gives up.
      if (!hasLocked(join(path, removers)) && isComplete(path, name)) return hold(path, lock);
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw cannotKeep(path, error);
    }
    lock?.[Symbol.dispose]();
    return undefined;
  }

  function begin(group: string): StartedContext {
    const path = join(root, group, crypto.randomUUID());
    let lock: Disposable;
    try {
      requireOwnDirectory(root, { isLinkable: true });
      lock = createLocked(path);
    } catch (error) {
      if (error instanceof BoughError) throw error;
      throw cannotKeep(path, error);
    }
    let end = () => {
      lock[Symbol.dispose]();
      removeUnused(path);
    };
    return {
      path,
      keep(name) {
        const known = find(group, name);
        if (known !== undefined) return known;
        onDisk(path, () => writeFileSync(join(path, completeMarker), completed(name)));
        // Several processes may keep the same context at the same time: all use the first one in the order of their names.
        const first = find(group, name);
        removeOld(root, clock.now());
        if (first !== undefined && first.path !== path) return first;
        first?.[Symbol.dispose]();
        end = () => {};
        return hold(path, lock);
      },
      [Symbol.dispose]: () => end(),
    };
  }

  return { find, begin };
}

/** Returns the storage for the contexts of `--build-context`: each has its own group, which is removed with the build's session. */
export function keptForSession({ find, begin }: KeptContexts, session: string): KeptContexts {
  return {
    find: (group, name) => find(`${session}-${group}`, name),
    begin: (group) => begin(`${session}-${group}`),
  };
}

/** Removes the contexts of a build's session that no process uses. Does nothing for other sessions, which have no contexts. */
export function removeContextsOf(session: string, parent: string): void {
  const own = contextGroupOf(session);
  if (own === undefined) return;
  for (const group of listNames(join(parent, "contexts")))
    if (group === own || group.startsWith(`${own}-`)) removeKeptContexts(parent, group);
}

/** Removes the contexts of a group that no process uses. */
export function removeKeptContexts(parent: string, group: string): void {
  const directory = join(parent, "contexts", group);
  for (const id of listNames(directory)) removeUnused(join(directory, id));
  removeIfEmpty(directory);
}

/** Removes unused contexts that are incomplete, old, or not among the latest. */
function removeOld(root: string, now: number): void {
  for (const group of listNames(root)) {
    const directory = join(root, group);
    const found = listNames(directory)
      .map((id) => join(directory, id))
      .map((path) => ({ path, usedAt: isComplete(path) ? usedAt(path) : 0 }))
      .sort((one, other) => other.usedAt - one.usedAt);
    for (const [index, { path, usedAt }] of found.entries())
      if (index >= maxKept || usedAt < now - keptMilliseconds) removeUnused(path);
    removeIfEmpty(directory);
  }
}

/**
 * Returns the text of the file that marks a complete context. It contains the boot ID: files of an earlier boot may be cut off by a
 * power failure, since nothing waits until they are on the disk. Other systems than Linux have no boot ID.
 */
function completed(name: string): string {
  return `${bootId() ?? ""}\n${name}\n`;
}

/** True if the context is complete and, where `name` is given, has this name. */
function isComplete(path: string, name?: string): boolean {
  const text = readOptional(join(path, completeMarker));
  const [, own = ""] = text.split("\n");
  return text === completed(name ?? own);
}

/** Makes the directory of a context that this process uses. Retries: another process may remove it before it is locked. */
function createLocked(path: string): Disposable {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const name of [users, removers]) mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
      const user = join(path, users, crypto.randomUUID());
      const lock = lockFile(user);
      if (!hasLocked(join(path, removers)) && existsSync(user)) return lock;
      // Another process has begun to remove the directory.
      lock[Symbol.dispose]();
    } catch (error) {
      if (!["ENOENT", "EEXIST"].includes(errorCode(error) ?? "") || attempt === maxAttempts) throw error;
    }
  }
}

/** Returns the time when a context was used last; 0 if it has just been removed. */
function usedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Reports a failed write as an error of the disk, not of the content. */
export function onDisk<Result>(place: string, write: () => Result): Result {
  try {
    return write();
  } catch (error) {
    throw cannotKeep(place, error);
  }
}

export function cannotKeep(path: string, error: unknown): BoughError {
  return new BoughError(`cannot store the build context in ${path}: ${reasonOf(error)}`, {
    hint: "Check the directory's permissions and the disk's free space, or set BOUGH_HOME to another directory.",
    cause: error,
  });
}

// Removal of contexts that no process uses.

/** The directory with a lock file of each process that uses a context. */
const users = ".users";
/** The directory with a lock file of each process that is about to remove a context. */
const removers = ".removers";

/**
 * Removes a context unless a process uses it. Only one process at a time does so. If that is killed, the context is still complete,
 * or marked as incomplete. A context that can't be removed stays, without an error.
 */
function removeUnused(path: string): void {
  const own = crypto.randomUUID();
  let lock: Disposable;
  try {
    // An incomplete context may lack the directory.
    makeUnlessThere(join(path, removers));
    lock = lockFile(join(path, removers, own));
  } catch {
    return;
  }
  const isFree = !hasLocked(join(path, users)) && !hasLocked(join(path, removers), own);
  if (isFree) {
    rmSync(join(path, completeMarker), { force: true });
    for (const name of listNames(path)) if (name !== removers) removeTree(join(path, name));
    for (const name of listNames(join(path, removers)))
      if (name !== own) removeTree(join(path, removers, name));
  }
  lock[Symbol.dispose]();
  if (isFree) for (const directory of [join(path, removers), path]) removeIfEmpty(directory);
}

/** True if a process that has locked a file in the directory is alive. The file `own` does not count. */
function hasLocked(directory: string, own?: string): boolean {
  return listNames(directory).some((name) => name !== own && isLocked(join(directory, name)));
}

function makeUnlessThere(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty, or gone.
  }
}
