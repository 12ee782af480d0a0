import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Bytes on disk of files and trees; a file with several names in them counts once. Nothing, where there is nothing. */
export function diskUsage(paths: string | readonly string[]): number {
  return measure([paths].flat(), (seen) => seen === 1);
}

/** Measures one tree after the other as `diskUsage` does: a file that several have counts for the first. */
export function createDiskUsage(): (path: string) => number {
  const met = new Map<string, number>();
  return (path) => measure([path], (seen) => seen === 1, met);
}

/** Bytes that are free once the trees are gone: a file that has a name elsewhere, too, stays. */
export function freedBytes(paths: readonly string[]): number {
  return measure(paths, (seen, names) => seen === names);
}

/** `counts`: told of a file with several names how many of them have been met, and how many it has. */
function measure(
  paths: readonly string[],
  counts: (seen: number, names: number) => boolean,
  met = new Map<string, number>(),
): number {
  const waiting = [...paths];
  let bytes = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const stats = lstatSync(next, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const key = `${stats.dev}:${stats.ino}`;
      const seen = (met.get(key) ?? 0) + 1;
      met.set(key, seen);
      if (!counts(seen, stats.nlink)) continue;
    }
    bytes += stats.blocks * 512;
    if (stats.isDirectory()) for (const name of readdirSync(next)) waiting.push(join(next, name));
  }
  return bytes;
}
