import { accessSync, constants, lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { lockFile, takeOverLock } from "../../lock-file.ts";
import { listNames, removeTree } from "../../remove-tree.ts";
import { errorCode, isDiskFullError, reasonOf } from "../../system-error.ts";
import { stateDirectory } from "./runtime.ts";

/** A place for large temporary files, which are removed when it is disposed of. */
interface Scratch extends Disposable {
  /** Nothing is there yet: it is for a file or for a directory. */
  path: string;
}

const purposes = ["agent", "git", "context", "push", "export", "import", "base", "cache"] as const;

type Purpose = (typeof purposes)[number];

const named = new RegExp(`^bough-(?:${purposes.join("|")})-`);
/** What is old and has no lock is removed: earlier versions of bough made that. */
const keptMilliseconds = 24 * 60 * 60 * 1000;

/** Makes a scratch place: not in /tmp, which may be in memory. Removes what killed processes have left. */
export function openScratch(
  purpose: Purpose,
  environment: Readonly<Record<string, string | undefined>>,
  usual = usualPlace(environment),
): Scratch {
  const parent = environment.TMPDIR || (isWritable(usual) ? usual : ownDirectory(environment));
  for (const name of listNames(parent)) if (named.test(name)) removeAbandoned(join(parent, name));
  const { directory, lock } = makeDirectory(parent, purpose);
  return {
    path: join(directory, "files"),
    [Symbol.dispose]: () => removeDirectory(directory, lock),
  };
}

/** Returns the error of what was written there, with a hint if the disk is full. */
export function withScratchHint(error: unknown, { path }: Scratch): unknown {
  if (!isDiskFullError(error)) return error;
  return new BoughError(`cannot write ${path}: ${reasonOf(error)}`, {
    hint: placeHint,
    cause: error,
  });
}

const placeHint = "TMPDIR=DIRECTORY names another place for temporary files.";

/** Windows has one for each user. */
function usualPlace({ TEMP }: Readonly<Record<string, string | undefined>>): string {
  return process.platform === "win32" ? (TEMP ?? "") : "/var/tmp";
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** bough's own directory, for containers whose root is read-only. */
function ownDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const directory = stateDirectory({ environment, platform: process.platform });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/** Without its lock a directory is empty: it has just been made, or is about to be removed. Another process may do that. */
function makeDirectory(parent: string, purpose: Purpose): { directory: string; lock: Disposable } {
  const directory = join(parent, `bough-${purpose}-${crypto.randomUUID()}`);
  for (;;) {
    try {
      mkdirSync(directory, { mode: 0o700 });
    } catch (error) {
      throw new BoughError(`cannot make a temporary directory in ${parent}: ${reasonOf(error)}`, {
        hint: placeHint,
        cause: error,
      });
    }
    try {
      return { directory, lock: lockFile(join(directory, "lock")) };
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
    }
  }
}

function removeDirectory(directory: string, lock: Disposable): void {
  removeTree(join(directory, "files"));
  lock[Symbol.dispose]();
  removeIfEmpty(directory);
}

/** Removes what is this user's: other users can't have put a link into that. */
function removeAbandoned(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (process.getuid !== undefined && stats.uid !== process.getuid()) return;
  const lock = join(path, "lock");
  if (stats.isDirectory() && lstatSync(lock, { throwIfNoEntry: false }) !== undefined) {
    const taken = takeOverLock(lock);
    if (taken !== undefined) removeDirectory(path, taken);
    return;
  }
  if (stats.mtimeMs < Date.now() - keptMilliseconds) removeTree(path);
  else if (stats.isDirectory()) removeIfEmpty(path);
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty, or gone.
  }
}
