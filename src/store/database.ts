import type { Database } from "bun:sqlite";
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Clock, systemClock } from "../clock.ts";
import { isDamaged, makeFile, openDatabase } from "../database.ts";
import { BoughError } from "../errors.ts";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";
import { meansDiskFull, reasonOf } from "../system-error.ts";
import { noteSuffix, requireWhole } from "./wholeness.ts";

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
        ? "The next `bough build` sets it aside: builds then start without a cache, and sessions without a history; images stay."
        : meansDiskFull(error)
          ? "Free some space there, or set BOUGH_HOME to another directory. `bough engine prune` removes what the embedded engine does not need."
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
