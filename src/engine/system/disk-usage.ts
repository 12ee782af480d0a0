import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Bytes on disk of a file or a tree; a file with several names in it counts once. 0 where there is nothing. */
export function diskUsage(path: string): number {
  const seen = new Set<string>();
  const waiting = [path];
  let bytes = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const stats = lstatSync(next, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const key = `${stats.dev}:${stats.ino}`;
      if (seen.has(key)) continue;
      seen.add(key);
    }
    bytes += stats.blocks * 512;
    if (stats.isDirectory()) for (const name of readdirSync(next)) waiting.push(join(next, name));
  }
  return bytes;
}
