import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the bytes of files and trees, as docker and `bough inspect` count them: the contents of regular files. A file with several
 * names counts once, and a missing path as 0.
 */
export function diskUsage(paths: string | readonly string[]): number {
  return measure([paths].flat(), (seen) => seen === 1);
}

/** Returns a function that measures trees like `diskUsage`; a file with names in several trees counts for the first. */
export function createDiskUsage(): (path: string) => number {
  const met = new Map<string, number>();
  return (path) => measure([path], (seen) => seen === 1, met);
}

/** Returns the bytes that removing the trees frees: a file that also has a name elsewhere stays. */
export function freedBytes(paths: readonly string[]): number {
  return measure(paths, (seen, names) => seen === names);
}

/** `counts` decides for a file with several names, by the number of names seen so far and the number of all its names. */
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
    if (stats.isFile()) bytes += stats.size;
    if (stats.isDirectory()) for (const name of readdirSync(next)) waiting.push(join(next, name));
  }
  return bytes;
}
