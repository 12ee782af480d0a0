import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { namesIn, removeTree } from "../../left-behind.ts";
import { bootId, isLocked, lockFile } from "../../lock-file.ts";
import { requireOwnDirectory } from "../../own-path.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { contextGroupOf } from "./context-source.ts";

/**
 * Fetched contexts. Each has a directory, named by its commit or digest, in the directory of its group: of its build session, or
 * of a `--build-context` in it. A context stays as long as a process that uses it lives.
 */
export interface KeptContexts {
  /** Finds a context, and keeps it from being removed until the result is disposed of. Returns `undefined` if there is none. */
  find(group: string, name: string): HeldContext | undefined;
  /** Makes an empty directory, which is removed unless it is kept. */
  begin(group: string): StartedContext;
}

export interface HeldContext extends Disposable {
  path: string;
}

interface StartedContext extends Disposable {
  path: string;
  /**
   * Gives the directory its name. If another process was faster, returns the context that it fetched; if that one is being
   * removed, returns this one, to be used only once.
   */
  keep(name: string): HeldContext;
}

/** The maximum for one group: few users alternate between more branches. */
const maxKept = 4;
const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** The file with the boot ID of when the context was made. Nothing waits until its files are on the disk. */
const madeIn = ".boot";
/** Others may remove a directory again and again before it is locked. */
const maxAttempts = 100;

/** @param parent bough's own directory, which may not exist */
export function openKeptContexts(parent: string, clock: Pick<Clock, "now">): KeptContexts {
  const root = join(parent, "contexts");

  /** Marks a context as used now. */
  function hold(path: string, user: string, lock: Disposable): HeldContext {
    const now = new Date(clock.now());
    utimesSync(path, now, now);
    return {
      path,
      [Symbol.dispose]() {
        // It has moved since it was locked, if the context is a new one.
        rmSync(join(path, users, user), { force: true });
        lock[Symbol.dispose]();
      },
    };
  }

  function find(group: string, name: string): HeldContext | undefined {
    const path = join(root, group, name);
    const own = crypto.randomUUID();
    const user = join(path, users, own);
    let lock: Disposable | undefined;
    try {
      lock = lockFile(user);
      // A process that removes it locks a file, too, and then looks for users: one of the two sees the other, and gives up.
      const isComplete = readFileSync(join(path, madeIn), "utf8") === currentBoot();
      if (isComplete && !hasLocked(join(path, removers)) && existsSync(user)) return hold(path, own, lock);
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw cannotKeep(path, error);
    }
    lock?.[Symbol.dispose]();
    return undefined;
  }

  function begin(group: string): StartedContext {
    const own = crypto.randomUUID();
    const path = join(root, group, `.${own}`);
    let lock: Disposable;
    try {
      requireOwnDirectory(parent, { isLinkable: true });
      lock = makeLocked(path, own);
      writeFileSync(join(path, madeIn), currentBoot());
    } catch (error) {
      if (error instanceof BoughError) throw error;
      throw cannotKeep(path, error);
    }
    const remove = () => {
      removeTree(path);
      lock[Symbol.dispose]();
    };
    let end = remove;
    return {
      path,
      keep(name) {
        const target = join(root, group, name);
        const put = () => {
          if (!rename(path, target)) return find(group, name);
          end = () => {};
          return hold(target, own, lock);
        };
        let held = put();
        if (held === undefined) {
          // The target is incomplete, or about to be removed.
          removeUnused(target);
          held = put();
        }
        tidy(root, clock.now());
        if (held !== undefined) return held;
        end = () => {};
        return { path, [Symbol.dispose]: remove };
      },
      [Symbol.dispose]: () => end(),
    };
  }

  return { find, begin };
}

/** Returns the contexts of `--build-context`, each in a group of its own that ends with the build's session. */
export function keptForSession({ find, begin }: KeptContexts, session: string): KeptContexts {
  return {
    find: (group, name) => find(`${session}-${group}`, name),
    begin: (group) => begin(`${session}-${group}`),
  };
}

/** Removes the contexts of a build's session that no process uses. Other sessions have none. */
export function removeContextsOf(session: string, parent: string): void {
  const own = contextGroupOf(session);
  if (own === undefined) return;
  for (const group of namesIn(join(parent, "contexts")))
    if (group === own || group.startsWith(`${own}-`)) removeKeptContexts(parent, group);
}

/** Removes the contexts of a group that no process uses. */
export function removeKeptContexts(parent: string, group: string): void {
  const directory = join(parent, "contexts", group);
  for (const name of namesIn(directory)) if (!unfinished.test(name)) removeUnused(join(directory, name));
  removeRest(directory);
}

/** Removes unfinished directories of dead processes, and unused contexts that are old or not among the latest. */
function tidy(root: string, now: number): void {
  for (const group of namesIn(root)) {
    const directory = join(root, group);
    const kept = namesIn(directory)
      .filter((name) => !unfinished.test(name))
      .map((name) => ({ path: join(directory, name), usedAt: usedAt(join(directory, name)) }))
      .sort((one, other) => other.usedAt - one.usedAt);
    for (const [index, { path, usedAt }] of kept.entries())
      if (index >= maxKept || usedAt < now - keptMilliseconds) removeUnused(path);
    removeRest(directory);
  }
}

/** A power failure may have cut off files of an earlier boot. Other systems than Linux have no boot ID. */
function currentBoot(): string {
  return bootId() ?? "";
}

/**
 * Makes the directory of a context that this process uses. Retries: another process may remove it before it is locked, and its
 * parent while it is empty.
 */
function makeLocked(path: string, own: string): Disposable {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const name of [users, removers]) mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
      const user = join(path, users, own);
      const lock = lockFile(user);
      if (!hasLocked(join(path, removers)) && existsSync(user)) return lock;
      // Another process has begun to remove it.
      lock[Symbol.dispose]();
    } catch (error) {
      if (!["ENOENT", "EEXIST"].includes(errorCode(error) ?? "") || attempt === maxAttempts) throw error;
    }
  }
}

/** Returns false if something exists at `target`. */
function rename(path: string, target: string): boolean {
  try {
    renameSync(path, target);
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST"].includes(errorCode(error) ?? "")) return false;
    throw cannotKeep(path, error);
  }
}

/** Returns 0 if the path has just been removed. */
function usedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

export function cannotKeep(path: string, error: unknown): BoughError {
  return new BoughError(`cannot store the build context in ${path}: ${reasonOf(error)}`, {
    hint: "Check the directory's permissions and the disk's free space, or set BOUGH_HOME to another directory.",
    cause: error,
  });
}

// How contexts are removed that no process uses.

/** The directory with a lock file of each process that uses a context. */
const users = ".users";
/** The directory with a lock file of each process that is about to remove a context. */
const removers = ".removers";
/** Names of directories that a process is making or removing: a dot, and the name of its lock file in there. */
const unfinished = /^\./;

/** Removes an unused context. Only one process at a time does so. If it is killed, the context is either complete or gone. */
function removeUnused(path: string): void {
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
function removeRest(directory: string): void {
  // As carefully as a finished context: the process that makes one may lock it just now.
  for (const name of namesIn(directory)) if (unfinished.test(name)) removeUnused(join(directory, name));
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty.
  }
}

/** True if a process that has locked a file in the directory is alive. The file `own` does not count. */
function hasLocked(directory: string, own?: string): boolean {
  return namesIn(directory).some((name) => name !== own && isLocked(join(directory, name)));
}

function makeUnlessThere(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}
