import { accessSync, constants, lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { lockFile, takeOverLock } from "../../lock-file.ts";
import { listNames, removeTree } from "../../remove-tree.ts";
import { errorCode, isDiskFullError, reasonOf } from "../../system-error.ts";
import { stateDirectory } from "./runtime.ts";

/** A temporary directory for large files, which is removed when it is disposed of. */
interface Scratch extends Disposable {
  /** The path for a file or a directory. Nothing exists there yet. */
  path: string;
}

const purposes = ["agent", "git", "context", "push", "export", "import", "base", "cache"] as const;

type Purpose = (typeof purposes)[number];

const directoryPattern = new RegExp(`^bough-(?:${purposes.join("|")})-`);
/** The age at which a temporary file without a lock, which an earlier version of bough has made, is removed. */
const keptMilliseconds = 24 * 60 * 60 * 1000;

/** Makes a temporary directory: not in /tmp, which may be in memory. Removes those that killed processes have left. */
export function openScratch(
  purpose: Purpose,
  environment: Readonly<Record<string, string | undefined>>,
  usual = defaultParent(environment),
): Scratch {
  const parent = environment.TMPDIR || (isWritable(usual) ? usual : ownDirectory(environment));
  for (const name of listNames(parent)) if (directoryPattern.test(name)) removeAbandoned(join(parent, name));
  const { directory, lock } = makeDirectory(parent, purpose);
  return {
    path: join(directory, "files"),
    [Symbol.dispose]: () => removeDirectory(directory, lock),
  };
}

/** Returns the error of a write to the directory. If the disk is full, adds a hint. */
export function withScratchHint(error: unknown, { path }: Scratch): unknown {
  if (!isDiskFullError(error)) return error;
  return new BoughError(`cannot write ${path}: ${reasonOf(error)}`, {
    hint: temporaryHint,
    cause: error,
  });
}

const temporaryHint = "TMPDIR=DIRECTORY names another place for temporary files.";

/** Returns the directory for large temporary files: on Windows the user's own. */
function defaultParent({ TEMP }: Readonly<Record<string, string | undefined>>): string {
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

/** Returns bough's own directory, for containers whose root is read-only. */
function ownDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const directory = stateDirectory({ environment, platform: process.platform });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/**
 * Makes a temporary directory, and locks it. Another process may remove it before it is locked: without its lock, a directory is
 * empty.
 */
function makeDirectory(parent: string, purpose: Purpose): { directory: string; lock: Disposable } {
  const directory = join(parent, `bough-${purpose}-${crypto.randomUUID()}`);
  for (;;) {
    try {
      mkdirSync(directory, { mode: 0o700 });
    } catch (error) {
      throw new BoughError(`cannot make a temporary directory in ${parent}: ${reasonOf(error)}`, {
        hint: temporaryHint,
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

/** Removes a temporary directory that no process has locked, if it is this user's: other users can't have put a link into that. */
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
