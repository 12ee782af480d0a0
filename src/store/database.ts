import { Database } from "bun:sqlite";
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { BoughError } from "../errors.ts";
import { errorCode, reasonOf } from "../system-error.ts";

/**
 * Opens, or makes, one of bough's own databases and brings its tables up to date. `migrations[n]` leads from version n
 * to n + 1; a file that is newer than all of them was written by a newer bough and is left alone.
 */
export function openDatabase(path: string, migrations: readonly string[]): Database {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Made before SQLite does it: its journal files take over the mode, and 0600 keeps others out of all of them.
    closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600);
    const database = new Database(path, { create: true, strict: true });
    configure(database);
    migrate(database, migrations, path);
    return database;
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`cannot open the state file ${path}: ${reasonOf(error)}`, {
      hint: isDamaged(error)
        ? "Move it away: builds then start without a cache, and sessions without a history; images stay."
        : "Check its permissions and the disk's free space, or set BOUGH_HOME to another directory.",
      cause: error,
    });
  }
}

function isDamaged(error: unknown): boolean {
  return /^SQLITE_(NOTADB|CORRUPT)/.test(errorCode(error) ?? "");
}

function configure(database: Database): void {
  // The time-out comes first: switching to WAL takes a lock that another bough may hold just now.
  database.run("PRAGMA busy_timeout = 15000");
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = NORMAL");
  database.run("PRAGMA foreign_keys = ON");
}

function migrate(database: Database, migrations: readonly string[], path: string): void {
  if (versionOf(database) === migrations.length) return;
  database
    .transaction(() => {
      // Read again under the lock: another process may have been faster.
      const version = versionOf(database);
      if (version > migrations.length) {
        throw new BoughError(
          `the state file ${path} was written by a newer bough (version ${version} of its tables)`,
          {
            hint: "Use that bough, or set BOUGH_HOME to another directory.",
          },
        );
      }
      for (const migration of migrations.slice(version)) database.run(migration);
      database.run(`PRAGMA user_version = ${migrations.length}`);
    })
    .immediate();
}

function versionOf(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
}
