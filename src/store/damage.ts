import { SQLiteError } from "bun:sqlite";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";

/** A look through the file has found that it does not hang together. */
export class DamageError extends Error {
  override readonly name = "DamageError";
}

/** That, or SQLite's own word for it. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamageError) return true;
  return error instanceof SQLiteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code ?? "");
}

/**
 * Moves a database and its journal to a free name beside it, and answers that. `inode`: of the file that was found to be
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
