import type { FileStat } from "../sources/entry.ts";

/** Remembers the hash of a file's content by what `stat` says about the file. */
export interface HashCache {
  /** The hash that was set for exactly this path (absolute) and this state. */
  get(path: string, stat: FileStat): string | undefined;
  /** Called for settled files only, see `isSettled`. */
  set(path: string, stat: FileStat, sha256: string): void;
}

/**
 * Whether any later change of a file must show in its `stat`. A change within the same tick of the file system's
 * clock as the last one does not: such a file is "racy" (git's word for it), and what was read from it must not
 * be remembered. The change time decides, since no program can set it back.
 *
 * @param readAt when reading began, in milliseconds since the epoch
 */
export function isSettled(stat: FileStat, readAt: number): boolean {
  const age = BigInt(Math.floor(readAt)) * nanosecondsPerMillisecond - stat.ctimeNanoseconds;
  return age > (hasWholeSeconds(stat) ? coarseTick : fineTick);
}

export function isSameStat(one: FileStat, other: FileStat): boolean {
  return (
    one.inode === other.inode &&
    one.mtimeNanoseconds === other.mtimeNanoseconds &&
    one.ctimeNanoseconds === other.ctimeNanoseconds &&
    one.size === other.size &&
    one.device === other.device
  );
}

const nanosecondsPerMillisecond = 1_000_000n;
const nanosecondsPerSecond = 1_000_000_000n;

/** Linux stamps files with the time of its last timer tick, at most 10 ms ago. */
const fineTick = 100n * nanosecondsPerMillisecond;

/** FAT counts in steps of two seconds, older network file systems in seconds. */
const coarseTick = 3n * nanosecondsPerSecond;

function hasWholeSeconds({ mtimeNanoseconds, ctimeNanoseconds }: FileStat): boolean {
  return ctimeNanoseconds % nanosecondsPerSecond === 0n && mtimeNanoseconds % nanosecondsPerSecond === 0n;
}
