import {
  chmodSync,
  mkdirSync,
  readdirSync,
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
import { requireOwnDirectory } from "../../own-path.ts";
import { currentProcess, isRunning } from "../../process-identity.ts";
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
  /** Gives it its name; where another process has been faster, what that has fetched is used. */
  keep(name: string): HeldContext;
}

/** Of one session: more than a few branches are rarely built in turns. */
const maxKept = 4;
const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** The processes that use a context have a file each in here. */
const users = ".users";

/** @param parent bough's own directory, which need not be there */
export function openKeptContexts(parent: string, clock: Pick<Clock, "now">): KeptContexts {
  const root = join(parent, "contexts");

  function find(group: string, name: string): HeldContext | undefined {
    const path = join(root, group, name);
    const user = join(path, users, ownName());
    try {
      // First of all, so that nobody removes it after the next look.
      writeFileSync(user, "");
      const now = new Date(clock.now());
      utimesSync(path, now, now);
      return { path, [Symbol.dispose]: () => rmSync(user, { force: true }) };
    } catch (error) {
      if (errorCode(error) === "ENOENT") return undefined;
      throw cannotKeep(path, error);
    }
  }

  return {
    find,
    begin(group) {
      const path = join(root, group, `.${ownName()}`);
      try {
        requireOwnDirectory(parent, { isLinkable: true });
        mkdirSync(join(path, users), { recursive: true, mode: 0o700 });
      } catch (error) {
        if (error instanceof BoughError) throw error;
        throw cannotKeep(path, error);
      }
      return {
        path,
        keep(name) {
          try {
            renameSync(path, join(root, group, name));
          } catch (error) {
            const code = errorCode(error);
            if (code !== "ENOTEMPTY" && code !== "EEXIST") throw cannotKeep(path, error);
          }
          const held = find(group, name);
          if (held === undefined)
            throw new BoughError(`${path} was removed while the build fetched its context`);
          tidy(root, clock.now());
          return held;
        },
        [Symbol.dispose]: () => removeTree(path),
      };
    },
  };
}

/** Removes the contexts of a session. */
export function removeKeptContexts(parent: string, group: string): void {
  removeTree(join(parent, "contexts", group));
}

/** Removes what dead processes have left half-made, and what nobody uses and is old, or not among the latest. */
function tidy(root: string, now: number): void {
  for (const group of namesIn(root)) {
    const directory = join(root, group);
    const names = namesIn(directory);
    for (const name of names)
      if (name.startsWith(".") && !hasLivingOwner(name.slice(1))) removeTree(join(directory, name));
    const kept = names
      .filter((name) => !name.startsWith("."))
      .map((name) => ({ path: join(directory, name), usedAt: usedAt(join(directory, name)) }))
      .sort((one, other) => other.usedAt - one.usedAt);
    for (const [index, { path, usedAt }] of kept.entries())
      if ((index >= maxKept || usedAt < now - keptMilliseconds) && !isUsed(path)) removeTree(path);
    try {
      rmdirSync(directory);
    } catch {
      // It is not empty.
    }
  }
}

function isUsed(path: string): boolean {
  return namesIn(join(path, users)).some(hasLivingOwner);
}

/** 0 for what has just gone. */
function usedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** What can't be removed is no reason for a build to fail. Directories may be closed to their owner. */
function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    open(path);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next one tries again.
    }
  }
}

function open(directory: string): void {
  try {
    chmodSync(directory, 0o700);
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) open(join(directory, entry.name));
  } catch {
    // It is somebody else's, and stays.
  }
}

/** Names one use by this process. */
function ownName(): string {
  return `${currentProcess()}_${crypto.randomUUID()}`;
}

function hasLivingOwner(name: string): boolean {
  return isRunning(name.split("_", 1)[0] ?? "");
}

export function cannotKeep(path: string, error: unknown): BoughError {
  return new BoughError(`cannot keep the build context in ${path}: ${reasonOf(error)}`, {
    hint: "Check the directory's permissions and the disk's free space, or set BOUGH_HOME to another directory.",
    cause: error,
  });
}
