import {
  existsSync,
  mkdirSync,
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
import { hasLivingOwner, namesIn, ownName, removeAbandoned, removeTree } from "../../left-behind.ts";
import { requireOwnDirectory } from "../../own-path.ts";
import { errorCode, reasonOf } from "../../system-error.ts";

/**
 * Contexts that were fetched, each in a directory by what it is (a commit, a digest), in that of its build session. What a build
 * uses stays while its process lives.
 */
export interface KeptContexts {
  /** Keeps it from being removed until that is disposed of; `undefined` where it is not there. */
  find(group: string, name: string): HeldContext | undefined;
  /** Makes an empty directory, which goes unless it is kept. */
  begin(group: string): StartedContext;
}

export interface HeldContext extends Disposable {
  path: string;
}

export interface StartedContext extends Disposable {
  path: string;
  /** Gives it its name. Where another process has been faster, what that has fetched is used; where that is going, this one once. */
  keep(name: string): HeldContext;
}

/** The maximum for one session: rarely are more branches built in turns. */
const maxKept = 4;
const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** The processes that use a context have a file each in here. */
const users = ".users";
/** Likewise those that are about to remove it. */
const removers = ".removers";
const maxAttempts = 10;
/** What is half-made, or being removed, is named for the process that does that. */
const unfinished = /^\./;

/** @param parent bough's own directory, which need not be there */
export function openKeptContexts(parent: string, clock: Pick<Clock, "now">): KeptContexts {
  const root = join(parent, "contexts");

  /** Every build that asks for it makes it younger. */
  function hold(path: string, user: string): HeldContext {
    const now = new Date(clock.now());
    utimesSync(path, now, now);
    return { path, [Symbol.dispose]: () => rmSync(join(path, users, user), { force: true }) };
  }

  function find(group: string, name: string): HeldContext | undefined {
    const path = join(root, group, name);
    const own = ownName();
    const user = join(path, users, own);
    try {
      writeFileSync(user, "");
      // Whoever removes it says so, too, and looks for users then: one of the two sees the other, and leaves it.
      if (!hasLivingOwner(join(path, removers)) && existsSync(user)) return hold(path, own);
      rmSync(user, { force: true });
      return undefined;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return undefined;
      throw cannotKeep(path, error);
    }
  }

  function begin(group: string): StartedContext {
    const own = ownName();
    const path = join(root, group, `.${own}`);
    try {
      requireOwnDirectory(parent, { isLinkable: true });
      for (const name of [users, removers]) makeDirectory(join(path, name));
      writeFileSync(join(path, users, own), "");
    } catch (error) {
      if (error instanceof BoughError) throw error;
      throw cannotKeep(path, error);
    }
    const remove = () => removeTree(path);
    let end = remove;
    return {
      path,
      keep(name) {
        const target = join(root, group, name);
        const put = () => (rename(path, target) ? hold(target, own) : find(group, name));
        let held = put();
        if (held === undefined) {
          // It is not whole, or about to go.
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

/** Removes the contexts of a session that nobody uses. */
export function removeKeptContexts(parent: string, group: string): void {
  const directory = join(parent, "contexts", group);
  for (const name of namesIn(directory)) if (!unfinished.test(name)) removeUnused(join(directory, name));
  removeRest(directory);
}

/** Removes what dead processes have left unfinished, and what nobody uses and is old, or not among the latest. */
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

/** One process at a time removes it. Killed at any instant, that leaves a context that is whole, or none. */
function removeUnused(path: string): void {
  const own = ownName();
  const removal = join(path, removers, own);
  try {
    // What is not whole may lack it.
    makeUnlessThere(join(path, removers));
    writeFileSync(removal, "");
  } catch {
    return;
  }
  const isFree = !hasLivingOwner(join(path, users)) && !hasLivingOwner(join(path, removers), own);
  // Else what is there now has taken the place of what was asked about.
  if (!isFree || !existsSync(removal) || !removeAside(path, own)) rmSync(removal, { force: true });
}

/** Returns false where it can't be moved, and so stays: that is no reason to fail. */
function removeAside(path: string, own: string): boolean {
  const aside = join(path, "..", `.${own}`);
  try {
    renameSync(path, aside);
  } catch {
    return false;
  }
  removeTree(aside);
  return true;
}

function removeRest(directory: string): void {
  removeAbandoned(directory, unfinished);
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty.
  }
}

/** Another process may find a directory on the way empty, and remove it. */
function makeDirectory(path: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      return;
    } catch (error) {
      if (errorCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
    }
  }
}

function makeUnlessThere(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

/** Returns false where something is there. */
function rename(path: string, target: string): boolean {
  try {
    renameSync(path, target);
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST"].includes(errorCode(error) ?? "")) return false;
    throw cannotKeep(path, error);
  }
}

/** 0 for what has just gone. */
function usedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

export function cannotKeep(path: string, error: unknown): BoughError {
  return new BoughError(`cannot keep the build context in ${path}: ${reasonOf(error)}`, {
    hint: "Check the directory's permissions and the disk's free space, or set BOUGH_HOME to another directory.",
    cause: error,
  });
}
