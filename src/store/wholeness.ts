import type { Database } from "bun:sqlite";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { Clock } from "../clock.ts";

/** The suffix of the file that records in which state a state file passed its check. */
export const noteSuffix = "-whole";

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
export function requireWhole(database: Database, path: string, clock: Pick<Clock, "now">): void {
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
    // It is checked again the next time.
  }
}

/** The check of a state file has failed. */
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
