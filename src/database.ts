import { Database } from "bun:sqlite";
import { closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { BoughError } from "./errors.ts";
import { errorCode } from "./system-error.ts";

/** How long a process waits for others that write. */
const waitMilliseconds = 15_000;
const pauseMilliseconds = 5;

/**
 * Opens, or makes, one of bough's own databases (0600) and brings its tables up to date; safe with several processes at once.
 * `migrations[n]` leads from version n to n + 1. `check` looks at the file before its tables are touched.
 *
 * @throws BoughError where a newer bough wrote the file, which is left alone; what SQLite or the file system throws
 */
export function openDatabase(
  path: string,
  migrations: readonly string[],
  check: (database: Database) => void = () => undefined,
): Database {
  makeFile(path);
  const database = new Database(path, { create: true, strict: true });
  try {
    useWriteAheadLog(database);
    database.run("PRAGMA synchronous = NORMAL");
    database.run("PRAGMA foreign_keys = ON");
    check(database);
    migrate(database, migrations, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Makes a file before SQLite does it, and returns its inode. SQLite's journal files take over the mode, and 0600 keeps others
 * out of all of them.
 */
export function makeFile(path: string): bigint {
  const descriptor = openSync(path, "a", 0o600);
  try {
    const { ino, mode } = fstatSync(descriptor, { bigint: true });
    if ((mode & 0o777n) !== 0o600n) fchmodSync(descriptor, 0o600);
    return ino;
  } finally {
    closeSync(descriptor);
  }
}

/** Returns whether SQLite says that a file is not a database, or a broken one. */
export function isDamaged(error: unknown): boolean {
  return /^SQLITE_(NOTADB|CORRUPT)/.test(errorCode(error) ?? "");
}

/** Runs `work` with the database's one write lock held; rolled back when it throws. */
export function inTransaction<T>(database: Database, work: () => T): T {
  return database.transaction(work).immediate();
}

/**
 * Has a database wait for others, and keeps its changes in a write-ahead log. That the waiting time does not hold
 * for the switch to the log is SQLite's way: where several processes make it at the same moment, it fails at once for all
 * but one.
 */
function useWriteAheadLog(database: Database): void {
  database.run(`PRAGMA busy_timeout = ${waitMilliseconds}`);
  const until = performance.now() + waitMilliseconds;
  for (;;) {
    try {
      database.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (errorCode(error) !== "SQLITE_BUSY" || performance.now() > until) throw error;
      Bun.sleepSync(pauseMilliseconds);
    }
  }
}

function migrate(database: Database, migrations: readonly string[], path: string): void {
  if (versionOf(database) === migrations.length) return;
  inTransaction(database, () => {
    // Read again under the lock: another process may have been faster.
    const version = versionOf(database);
    if (version > migrations.length) {
      throw new BoughError(
        `the state file ${path} was written by a newer bough (version ${version} of its tables)`,
        { hint: "Use that bough, or set BOUGH_HOME to another directory." },
      );
    }
    for (const migration of migrations.slice(version)) database.run(migration);
    database.run(`PRAGMA user_version = ${migrations.length}`);
  });
}

function versionOf(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
}
