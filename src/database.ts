import { Database } from "bun:sqlite";
import { closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { BoughError } from "./errors.ts";
import { errorCode } from "./system-error.ts";

const retryMilliseconds = 5;

/**
 * Opens or makes one of bough's databases (0600) and brings its tables up to date; safe with several processes at once.
 * `migrations[n]` leads from version n to n + 1. `check` is called before the tables are changed. `waitMilliseconds`: how long
 * opening it, and each statement later, waits for other processes that write.
 *
 * @throws BoughError if a newer bough wrote the file, which stays unchanged; errors of SQLite or the file system
 */
export function openDatabase(
  path: string,
  migrations: readonly string[],
  check: (database: Database) => void = () => undefined,
  waitMilliseconds = 15_000,
): Database {
  makeFile(path);
  const database = new Database(path, { create: true, strict: true });
  try {
    useWriteAheadLog(database, waitMilliseconds);
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
 * Makes a database file before SQLite does, with mode 0600, and returns its inode. SQLite's journal files get the same mode, so
 * other users can't open any of them.
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

/** True for SQLite's errors that a file is not a database, or is damaged, and for errors wrapped around one. */
export function isDamaged(error: unknown): boolean {
  return damageOf(error) !== undefined;
}

/** Returns SQLite's error itself; see `isDamaged`. */
export function damageOf(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return /^SQLITE_(NOTADB|CORRUPT)/.test(errorCode(error) ?? "") ? error : damageOf(error.cause);
}

/** Runs `work` in a transaction that holds the database's write lock. It is rolled back if `work` throws. */
export function inTransaction<T>(database: Database, work: () => T): T {
  return database.transaction(work).immediate();
}

/**
 * Sets the busy timeout and switches to a write-ahead log. SQLite's timeout does not apply to this switch: if several processes
 * do it at the same moment, it fails at once for all but one, so it is repeated.
 */
function useWriteAheadLog(database: Database, waitMilliseconds: number): void {
  database.run(`PRAGMA busy_timeout = ${waitMilliseconds}`);
  const until = performance.now() + waitMilliseconds;
  for (;;) {
    try {
      database.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (errorCode(error) !== "SQLITE_BUSY" || performance.now() > until) throw error;
      Bun.sleepSync(retryMilliseconds);
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
