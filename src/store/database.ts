import { Database } from "bun:sqlite";
import { closeSync, fchmodSync, fstatSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { BoughError } from "../errors.ts";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";
import { reasonOf } from "../system-error.ts";
import { useWriteAheadLog } from "../write-ahead-log.ts";
import { DamageError, isDamage, setAside } from "./damage.ts";

export interface OpenOptions {
  /** Called with the new name of a damaged file, in whose place there is an empty one. Without it, damage is an error. */
  onDamaged?: (setAside: string) => void;
}

/**
 * Opens, or makes, one of bough's own databases and brings its tables up to date. `migrations[n]` leads from version n
 * to n + 1; a file that is newer than all of them was written by a newer bough and is left alone.
 */
export function openDatabase(
  path: string,
  migrations: readonly string[],
  { onDamaged }: OpenOptions = {},
): Database {
  try {
    requireOwnDirectory(dirname(path), { isLinkable: true });
    for (const name of ["", "-wal", "-shm"]) requireOwnFile(`${path}${name}`);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const inode = makeFile(path);
    try {
      return open(path, migrations);
    } catch (error) {
      if (onDamaged === undefined || !isDamage(error)) throw error;
      const name = setAside(path, inode);
      makeFile(path);
      const database = open(path, migrations);
      if (name !== undefined) onDamaged(name);
      return database;
    }
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`cannot open the state file ${path}: ${reasonOf(error)}`, {
      hint: isDamage(error)
        ? "The next `bough build` sets it aside: builds then start without a cache, and sessions without a history; images stay."
        : "Check its permissions and the disk's free space, or set BOUGH_HOME to another directory.",
      cause: error,
    });
  }
}

/** Before SQLite does it: its journal files take over the mode, and 0600 keeps others out of all of them. */
function makeFile(path: string): bigint {
  const descriptor = openSync(path, "a", 0o600);
  try {
    const { ino, mode } = fstatSync(descriptor, { bigint: true });
    if ((mode & 0o777n) !== 0o600n) fchmodSync(descriptor, 0o600);
    return ino;
  } finally {
    closeSync(descriptor);
  }
}

function open(path: string, migrations: readonly string[]): Database {
  const database = new Database(path, { create: true, strict: true });
  try {
    configure(database);
    requireWhole(database, path);
    migrate(database, migrations, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Above it, looking through all of it would be felt. */
const checkedBytes = 16 * 1024 * 1024;

/** A file that was cut short, or written over, can be opened, and fails only where it is read. */
function requireWhole(database: Database, path: string): void {
  if (statSync(path).size > checkedBytes) return;
  const found = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
  if (found !== "ok") throw new DamageError(found ?? "it can't be checked");
}

function configure(database: Database): void {
  useWriteAheadLog(database, 15_000);
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
