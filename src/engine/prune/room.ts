import { randomBytes } from "node:crypto";
import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A disk's size and free space in bytes. */
export interface Disk {
  bytes: number;
  freeBytes: number;
}

/** Shares of the disk, like BuildKit's `minFreeSpace` and `reservedSpace`: what stays free, and what the engine keeps in any case. */
const [minFree, reserved] = [0.2, 0.1];

/** Returns true if a disk is so full that the engine makes room. */
export function needsRoom({ bytes, freeBytes }: Disk): boolean {
  return freeBytes < bytes * minFree;
}

/** Returns how many of the bytes that the engine uses may stay on a disk. */
export function bytesToKeep({ bytes, freeBytes }: Disk, usedBytes: number): number {
  return Math.max(bytes * reserved, usedBytes - Math.max(0, bytes * minFree - freeBytes));
}

export function diskOf(directory: string): Disk {
  const { blocks, bavail, bsize } = statfsSync(directory);
  return { bytes: blocks * bsize, freeBytes: bavail * bsize };
}

/** The size of the reserve: opening bough's databases and removing their records takes less. */
const reservedBytes = 1024 * 1024;
/** The minimum free space for making the reserve, which must not fill a small disk itself. */
const minFreeBytes = 64 * 1024 * 1024;

/** Reserves the space that `engine prune` needs to open databases on a full disk. */
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
