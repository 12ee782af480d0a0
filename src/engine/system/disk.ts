import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { runHelper } from "./helper.ts";
import { type Environment, findProgram, helperEnvironment } from "./programs.ts";

/** Syncing a layer of many gigabytes to a slow disk takes time. A disk that takes longer than this has failed. */
const maxSyncSeconds = 1_800;

/**
 * Waits until everything written to the file system of `path` is on the disk. A layer can have many thousand files, which no call
 * of Bun's syncs at once.
 */
export async function syncToDisk(
  host: { environment: Environment; clock: Clock },
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const { status, stderr } = await runHelper([findProgram("sync", host.environment), "-f", path], {
    environment: helperEnvironment(host.environment),
    clock: host.clock,
    seconds: maxSyncSeconds,
    signal,
    hint: "The disk may be failing: look for the kernel's errors with `dmesg`.",
  });
  if (status !== 0) throw new BoughError(`could not write ${path} to disk: ${stderr.trim()}`);
}
