import { lstatSync, type Stats, statfsSync } from "node:fs";
import { join } from "node:path";
import { namesIn } from "../../../left-behind.ts";
import { createPace } from "../../../pace.ts";
import { errorCode } from "../../../system-error.ts";

/** Bytes counted for an entry in addition to its content: its header's size in a layer's archive. Empty files count too. */
const entryBytes = 512;

/**
 * Returns the size that a layer's limit is compared with: the disk space of its files, and 512 bytes for each entry. Stops
 * counting past `enough`. Rejects once the signal is aborted.
 */
export async function countedSize(upper: string, enough: number, signal?: AbortSignal): Promise<number> {
  const pace = createPace(signal);
  const seen = new Set<string>();
  const waiting = [upper];
  let bytes = 0;
  for (let next = waiting.pop(); next !== undefined && bytes <= enough; next = waiting.pop()) {
    // The command may remove a directory at any time.
    for (const name of namesIn(next)) {
      if (bytes > enough) break;
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = join(next, name);
      const stats = statsOf(path);
      if (stats === "gone") continue;
      if (stats === "out of reach") return Number.POSITIVE_INFINITY;
      bytes += entryBytes;
      if (stats.isDirectory()) waiting.push(path);
      else if (stats.nlink === 1) bytes += stats.blocks * 512;
      else if (!seen.has(`${stats.ino}`)) {
        seen.add(`${stats.ino}`);
        bytes += stats.blocks * 512;
      }
    }
  }
  return bytes;
}

/** Returns the free bytes on a directory's file system, and how many more entries it can have. */
export function freeRoom(directory: string): { bytes: number; entries: number } {
  const { bfree, bsize, ffree } = statfsSync(directory);
  return { bytes: bfree * bsize, entries: ffree };
}

/** An entry whose path is too long for lstat(2) could hide any size. */
function statsOf(path: string): Stats | "gone" | "out of reach" {
  try {
    return lstatSync(path);
  } catch (error) {
    return errorCode(error) === "ENAMETOOLONG" ? "out of reach" : "gone";
  }
}
