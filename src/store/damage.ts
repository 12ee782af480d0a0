import { existsSync, renameSync, rmSync, statSync } from "node:fs";

/** A look through the file has found that it does not hang together. */
export class DamageError extends Error {
  override readonly name = "DamageError";
  /** As SQLite has it. */
  readonly code = "SQLITE_CORRUPT";
}

/**
 * Moves a database and its journal to a free name beside it, and returns that. `inode`: of the file that was found to be
 * damaged; where another process has put a new one in its place already, nothing is moved.
 */
export function setAside(path: string, inode: bigint): string | undefined {
  if (statSync(path, { bigint: true }).ino !== inode) return undefined;
  let name = `${path}.damaged`;
  for (let number = 2; existsSync(name); number++) name = `${path}.damaged-${number}`;
  renameSync(path, name);
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${name}-wal`);
  rmSync(`${path}-shm`, { force: true });
  return name;
}
