import type { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Clock, systemClock } from "../clock.ts";
import { inTransaction, isDamaged, makeFile, openDatabase } from "../database.ts";
import { BoughError } from "../errors.ts";
import { wording } from "../messages/wording.ts";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";
import { isDiskFullError, reasonOf } from "../system-error.ts";

export interface OpenOptions {
  /** Called with the new name of a damaged file, which an empty one replaces. If it is missing, damage is an error. */
  onDamaged?: (setAside: string) => void;
  clock?: Pick<Clock, "now">;
}

/** Opens a state file, or makes it with its directory (mode 0700); see `openDatabase`. */
export function openStateFile(
  path: string,
  migrations: readonly string[],
  { onDamaged, clock = systemClock }: OpenOptions = {},
): Database {
  const open = () => openDatabase(path, migrations, (database) => requireWhole(database, path, clock));
  try {
    requireOwnDirectory(dirname(path), { isLinkable: true });
    for (const name of ["", "-wal", "-shm", noteSuffix]) requireOwnFile(`${path}${name}`);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const inode = makeFile(path);
    try {
      return open();
    } catch (error) {
      if (onDamaged === undefined || !isDamaged(error)) throw error;
      const name = setAside(path, inode);
      const database = open();
      if (name !== undefined) onDamaged(name);
      return database;
    }
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`cannot open the state file ${path}: ${reasonOf(error)}`, {
      hint: isDamaged(error)
        ? wording`The next ${{ command: "build" }} sets it aside: builds then start without a cache, and sessions without a history; images stay.`
        : isDiskFullError(error)
          ? wording`Free some space there, or set BOUGH_HOME to another directory.${wording` ${{ command: "engine prune" }} removes what the embedded engine does not need.`}`
          : "Check its permissions and the disk's free space, or set BOUGH_HOME to another directory.",
      cause: error,
    });
  }
}

/**
 * Moves a database and its journal to a free name beside it, and returns that. `inode`: the damaged file's. Moves nothing if
 * another process has replaced the file already.
 */
function setAside(path: string, inode: bigint): string | undefined {
  if (statSync(path, { bigint: true }).ino !== inode) return undefined;
  let name = `${path}.damaged`;
  for (let number = 2; existsSync(name); number++) name = `${path}.damaged-${number}`;
  renameSync(path, name);
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${name}-wal`);
  rmSync(`${path}-shm`, { force: true });
  return name;
}

/** The suffix of the file that records in which state a state file passed its check. */
const noteSuffix = "-whole";

/** Checking a larger file would delay the command noticeably. */
const checkedBytes = 16 * 1024 * 1024;

/** Changes within one tick of the file system's clock have the same time stamps; see `isSettled` in context/hashing. */
const settledMilliseconds = 100;

/**
 * Checks a state file that has changed since its last check: a truncated or overwritten file can be opened, and only fails when
 * it is read. Records the check beside the file.
 *
 * @throws DamageError if the file is corrupt
 */
function requireWhole(database: Database, path: string, clock: Pick<Clock, "now">): void {
  const { size, state, changedAt } = describe(path);
  if (size > checkedBytes) return;
  const note = `${path}${noteSuffix}`;
  // Changes in the log that are not in the file yet are checked each time.
  const isLogged = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!isLogged && readNote(note) === state) return;
  const found = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
  if (found !== "ok") throw new DamageError(found ?? "it can't be checked");
  if (isLogged || clock.now() - changedAt < settledMilliseconds || describe(path).state !== state) return;
  try {
    writeFileSync(note, state, { mode: 0o600 });
  } catch {
    // The next command checks the file again.
  }
}

/** Thrown if the check of a state file has failed. */
class DamageError extends Error {
  override readonly name = "DamageError";
  /** SQLite's code. */
  readonly code = "SQLITE_CORRUPT";
}

/** `changedAt`: milliseconds since the epoch. */
function describe(path: string): { size: number; state: string; changedAt: number } {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
  const state = `${[dev, ino, size, mtimeNs, ctimeNs].join(" ")}\n`;
  return { size: Number(size), state, changedAt: Number(ctimeNs / 1_000_000n) };
}

function readNote(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** The time for which results about contents are kept. After that, the contents are read again. */
const keptMilliseconds = 90 * 24 * 3600 * 1000;

/** Removes old rows of a table about contents, since it is unknown when those are no longer used. */
export function forgetOld(
  database: Database,
  table: "url" | "copied" | "archive" | "fact",
  now: number,
  condition = "1",
): void {
  database.query(`DELETE FROM ${table} WHERE written_at < ? AND ${condition}`).run(now - keptMilliseconds);
}

/** The tables with rows about images. */
const tables = ["import", "fact", "copied"];

/** Removes the rows about images that are gone, except their entries in histories. */
export function forgetImages(database: Database, images: Iterable<string>): void {
  inTransaction(database, () => {
    for (const table of tables) {
      const forget = database.query<undefined, [string]>(`DELETE FROM ${table} WHERE image = ?`);
      for (const image of images) forget.run(image);
    }
    // The ID of a layer that is the image's difference from its base begins with the image.
    const forgetLayer = database.query<undefined, [string]>("DELETE FROM fact WHERE image GLOB ? || ' *'");
    for (const image of images) forgetLayer.run(image);
  });
}
