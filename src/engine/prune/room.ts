import { statfsSync } from "node:fs";

/** A disk's size and free space in bytes. */
export interface Disk {
  bytes: number;
  freeBytes: number;
}

/** Shares of the disk, as BuildKit's: it stays this free, while the engine has more than it always keeps. */
const [minFree, reserved] = [0.2, 0.1];

/** True if a disk is so full that the engine makes room. */
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
