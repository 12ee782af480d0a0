import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { runHelper } from "../../programs/helper.ts";
import { findWrongProgram } from "./program-trials.ts";
import { findProgram, helperEnvironment } from "./programs.ts";

/** A disk that takes longer has failed. Syncing a layer of many gigabytes to a slow disk takes time. */
const maxSyncSeconds = 1_800;
export const failingDiskHint = "The disk may be failing: look for the kernel's errors with `dmesg`.";
// A file system can have room when the device below it, such as a thin volume, has none.
const failedSyncHint = `${failingDiskHint} If it is full, free some space there, or on the device that the file system is on.`;

/**
 * A shell script that runs a program, and ignores the signals that a stopped service or session sends to all of its processes: the
 * result of a sync that they ended would be unknown.
 */
const ignoringSignals = 'trap "" HUP INT TERM; exec "$@"';
/** A shell's exit codes for a program that it can't start. */
const notStarted = [126, 127];

/** Thrown if a sync has reached the disk and failed. The kernel reports the error to no other sync. */
export class FailedSyncError extends BoughError {}

/**
 * Waits until everything written to the file system of `path` is on the disk. A layer can have many thousand files, which no call
 * of Bun's syncs at once. Rejects with a `FailedSyncError` unless no sync was started, or it was aborted.
 */
export async function syncToDisk(
  host: { environment: Environment; clock: Clock },
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const [shell, sync] = [findProgram("sh", host.environment), findProgram("sync", host.environment)];
  const { status, stderr } = await runHelper([shell, "-c", ignoringSignals, "sh", sync, "-f", path], {
    environment: helperEnvironment(host.environment),
    clock: host.clock,
    seconds: maxSyncSeconds,
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted || !(error instanceof BoughError)) throw error;
    throw new FailedSyncError(error.message, { hint: failingDiskHint });
  });
  if (status === 0) return;
  const message = `could not write ${path} to disk: ${stderr.trim()}`;
  // Whatever becomes of the trial, the result of this sync must not be lost.
  const wrong = await findWrongProgram(["sync"], host).catch(() => undefined);
  if (wrong !== undefined || notStarted.includes(status)) throw wrong ?? new BoughError(message);
  throw new FailedSyncError(message, { hint: failedSyncHint });
}

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

/** Measures trees. `counts` decides for a file with several names, by the number of names seen so far and the number of all its names. */
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
