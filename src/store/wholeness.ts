import type { Database } from "bun:sqlite";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { Clock } from "../clock.ts";

/** The suffix of the file that says in which state a state file was found whole. */
export const noteSuffix = "-whole";

/** Checking a larger file would delay the command noticeably. */
const checkedBytes = 16 * 1024 * 1024;

/** A change within the same tick of the file system's clock shows in no time stamp; see `isSettled` in context/hashing. */
const settledMilliseconds = 100;

/**
 * Looks through a state file that has changed since the last look: one that was cut short, or written over, can be opened, and
 * fails only where it is read. The look is noted beside the file.
 *
 * @throws DamageError where the file does not hang together
 */
export function requireWhole(database: Database, path: string, clock: Pick<Clock, "now">): void {
  const { size, state, changedAt } = describe(path);
  if (size > checkedBytes) return;
  const note = `${path}${noteSuffix}`;
  // What is in the log and not yet in the file is looked through each time.
  const isLogged = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!isLogged && readNote(note) === state) return;
  const found = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
  if (found !== "ok") throw new DamageError(found ?? "it can't be checked");
  if (isLogged || clock.now() - changedAt < settledMilliseconds || describe(path).state !== state) return;
  try {
    writeFileSync(note, state, { mode: 0o600 });
  } catch {
    // It is looked through again.
  }
}

/** A look through the file has found that it does not hang together. */
class DamageError extends Error {
  override readonly name = "DamageError";
  /** SQLite's own code. */
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
