/**
 * Lock files: each proves that the process which made it is alive. The kernel releases the lock when the process ends, however it
 * ends, and everybody who sees the file sees the lock, in whatever PID namespace, container or mount. The lock is the one that
 * SQLite takes of a database: it needs no further library, and children do not inherit it. The file stays empty. No other code
 * may open it: closing it there would release the lock (fcntl(2)).
 */
import { Database } from "bun:sqlite";
import { existsSync, lstatSync, readFileSync, rmSync } from "node:fs";
import { isDamaged, makeFile } from "./database.ts";
import { errorCode } from "./system-error.ts";

/** The time to wait for a lock of a file of this process's own: other processes hold it for a moment when they test it. */
const lockTimeoutMilliseconds = 5_000;

/** The locks that this process holds. Without these references, the garbage collector would release them. */
const held = new Set<Database>();

/** Makes a file and locks it, until the result is disposed of or this process ends. The path must be this process's own. */
export function lockFile(path: string): Disposable {
  for (;;) {
    makeFile(path);
    const lock = acquire(path, lockTimeoutMilliseconds);
    // Another process may have found the file before it was locked, and have removed it.
    if (lock !== undefined && existsSync(path)) return lock;
    lock?.[Symbol.dispose]();
  }
}

/** Locks the file of a process that has ended. Returns `undefined` if that process is alive, or the file is gone. */
export function takeOverLock(path: string): Disposable | undefined {
  const lock = isFile(path) ? acquire(path, 0) : undefined;
  if (lock === undefined || existsSync(path)) return lock;
  lock[Symbol.dispose]();
  return undefined;
}

/** The paths that `tryLock` has locked. Opening one again would release its lock. */
const sharedPaths = new Set<string>();

/**
 * Locks a path that several processes lock in turn. Returns `undefined` while another has it. Throws if files can't be locked there.
 */
export function tryLock(path: string): Disposable | undefined {
  if (sharedPaths.has(path)) return undefined;
  const inode = makeFile(path);
  const lock = acquire(path, 0);
  if (lock === undefined) return undefined;
  // The file may have been removed by its last owner, and be another's by now.
  if (lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino !== inode) {
    lock.release();
    return undefined;
  }
  sharedPaths.add(path);
  return {
    [Symbol.dispose]() {
      if (sharedPaths.delete(path)) lock[Symbol.dispose]();
    },
  };
}

/** True if the process that made the file is alive. If that can't be found out, it counts as alive. */
export function isLocked(path: string): boolean {
  if (!isFile(path)) return false;
  try {
    using database = new Database(path, { readonly: true });
    database.query("SELECT 1 FROM sqlite_schema").get();
    return false;
  } catch (error) {
    // A file that SQLite can read is not locked, whatever is in it.
    return !isDamaged(error) && isFile(path);
  }
}

/** Releases the lock without removing the file. */
interface Lock extends Disposable {
  release(): void;
}

function acquire(path: string, waitMilliseconds: number): Lock | undefined {
  let database: Database | undefined;
  try {
    database = new Database(path, { readwrite: true });
    database.run(`PRAGMA busy_timeout = ${waitMilliseconds}`);
    // Nothing is ever written, and no journal is to be left beside the file.
    database.run("PRAGMA journal_mode = MEMORY");
    database.run("BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    if (errorCode(error) === "SQLITE_BUSY" || isDamaged(error) || !isFile(path)) return undefined;
    throw error;
  }
  const own = database;
  held.add(own);
  const release = () => {
    if (held.delete(own)) own.close();
  };
  return {
    release,
    [Symbol.dispose]() {
      if (!held.has(own)) return;
      // The file is removed before its lock is released, so that it never exists unlocked. Windows can't remove an open file.
      const isRemoved = remove(path);
      release();
      if (!isRemoved) remove(path);
    },
  };
}

/** Returns false if the file can't be removed. It may stay: without a lock, the next process that finds it removes it. */
function remove(path: string): boolean {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}

/** Returns false for a link: in a shared directory, another user may have made it. */
function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

let cachedBootId: string | undefined;

/** Returns the kernel's boot ID; `undefined` on a system without /proc. */
export function bootId(): string | undefined {
  try {
    cachedBootId ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // The system has no boot ID.
  }
  return cachedBootId;
}
