import type { FileStat } from "../sources/entry.ts";

/** Remembers the hash of a file's content by the file's `stat`. */
export interface HashCache {
  /** Returns the hash that was set for exactly this path (absolute) and this state. */
  get(path: string, stat: FileStat): string | undefined;
  /** Called for settled files only, see `isSettled`. */
  set(path: string, stat: FileStat, sha256: string): void;
}

/** Milliseconds since the epoch. */
type ChangeTimes = Pick<FileStat, "mtimeMs" | "ctimeMs">;

/**
 * Returns true if any later change of a file must show in its `stat`. A change within the same tick of the file system's clock as
 * the last one does not show: such a file is "racy" (git's word for it), and its hash must not be remembered. The change time
 * (ctime) decides, since no program can set it back.
 *
 * @param readAt when reading began, in milliseconds since the epoch
 */
export function isSettled(stat: ChangeTimes, readAt: number): boolean {
  const age = Math.floor(readAt) - stat.ctimeMs;
  return age > (hasWholeSeconds(stat) ? coarseTick : fineTick);
}

export function isSameStat(one: FileStat, other: FileStat): boolean {
  return (
    one.inode === other.inode &&
    one.mtimeMs === other.mtimeMs &&
    one.ctimeMs === other.ctimeMs &&
    one.size === other.size &&
    one.device === other.device
  );
}

/** Milliseconds. Linux stamps files with the time of its last timer tick, at most 10 ms ago. */
const fineTick = 100;

/** FAT counts in steps of two seconds, older network file systems in seconds. */
const coarseTick = 3000;

function hasWholeSeconds({ mtimeMs, ctimeMs }: ChangeTimes): boolean {
  return ctimeMs % 1000 === 0 && mtimeMs % 1000 === 0;
}
