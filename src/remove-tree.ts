import { chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Removes what a killed process has left, as far as possible and without errors. Opens directories that are closed to their owner. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    makeAccessible(path);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // A later process tries again.
    }
  }
}

/** Returns the names in a directory; none if it can't be read, which is reported when something is written there. */
export function listNames(directory: string): string[] {
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
