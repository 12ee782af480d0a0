import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { runHelper } from "../../programs/helper.ts";
import { type Environment, explainUnknownOption, findProgram, helperEnvironment } from "./programs.ts";

/** Syncing a layer of many gigabytes to a slow disk takes time. A disk that takes longer than this has failed. */
const maxSyncSeconds = 1_800;
export const failingDiskHint = "The disk may be failing: look for the kernel's errors with `dmesg`.";
const fullDiskHint = "Free some space there, or on the device that the file system is on.";

/** Stopping a service (systemd) or a session sends signals to all of its processes: a sync that they end has an unknown result. */
const untouched = 'trap "" HUP INT TERM; exec "$@"';
/** A shell's exit codes for a program that it can't start. */
const notStarted = [126, 127];

/** A sync that reached the disk and failed. No other sync gets its error from the kernel. */
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
  const { status, stderr } = await runHelper([shell, "-c", untouched, "sh", sync, "-f", path], {
    environment: helperEnvironment(host.environment),
    clock: host.clock,
    seconds: maxSyncSeconds,
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted || !(error instanceof BoughError)) throw error;
    throw new FailedSyncError(error.message, { hint: failingDiskHint });
  });
  const unknown = explainUnknownOption(stderr, host.environment);
  if (unknown !== undefined) throw unknown;
  const message = `could not write ${path} to disk: ${stderr.trim()}`;
  if (notStarted.includes(status)) throw new BoughError(message);
  // A file system can have room when the device below it, such as a thin volume, has none.
  const isFull = /no space left|quota exceeded/i.test(stderr);
  if (status !== 0) throw new FailedSyncError(message, { hint: isFull ? fullDiskHint : failingDiskHint });
}
