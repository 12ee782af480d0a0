import { randomBytes } from "node:crypto";
import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Opening bough's databases and removing their records takes less. */
const reservedBytes = 1024 * 1024;
/** Minimum free space for making the reserve, which must not fill a small disk itself. */
const minFreeBytes = 64 * 1024 * 1024;

/** Sets space aside with which `engine prune` can begin on a full disk: its databases could not be opened without. */
export function keepReserve(directory: string): void {
  const path = pathIn(directory);
  try {
    if (existsSync(path) || freeBytes(directory) < minFreeBytes) return;
    // Random bytes, since some file systems store zeros without using space. `wx`: a link is not followed.
    writeFileSync(path, randomBytes(reservedBytes), { flag: "wx", mode: 0o600 });
  } catch {
    // The next engine tries again.
  }
}

/** Gives up the reserve if the disk is full. The next engine with enough free space sets one aside again. */
export function releaseReserve(directory: string): void {
  try {
    if (freeBytes(directory) < reservedBytes) rmSync(pathIn(directory), { force: true });
  } catch {
    // On a read-only file system, what needs space reports that.
  }
}

function pathIn(directory: string): string {
  return join(directory, "reserve");
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
