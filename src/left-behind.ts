/** Removes what processes leave behind that were killed. */
import { chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Removes a tree as far as possible, without errors. Makes directories accessible that are closed to their owner. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    makeAccessible(path);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next process tries again.
    }
  }
}

/** Returns the names in a directory; none if it can't be read, which is reported when something is written there. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function makeAccessible(directory: string): void {
  try {
    chmodSync(directory, 0o700);
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) makeAccessible(join(directory, entry.name));
  } catch {
    // It belongs to another user, and stays.
  }
}
