import type { Clock } from "../../clock.ts";
import { diskUsage } from "../system/disk-usage.ts";

const intervalMilliseconds = 250;

/**
 * Ends a download whose directory grows beyond what the check allows: a registry can send without end, and skopeo would write until
 * the disk is full. `check` throws where the bytes on disk are too many.
 */
export async function downloadWithin(
  directory: string,
  check: (bytes: number) => void,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  download: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const tooLarge = new AbortController();
  const watching = watch(directory, check, clock, ended.signal).catch((error: unknown) => {
    // The end of the download ends the watch, too.
    if (!ended.signal.aborted) tooLarge.abort(error);
  });
  try {
    await download(AbortSignal.any([signal, tooLarge.signal]));
  } finally {
    ended.abort();
    await watching;
  }
}

async function watch(
  directory: string,
  check: (bytes: number) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await clock.sleep(intervalMilliseconds, signal);
    check(diskUsage(directory));
  }
}
