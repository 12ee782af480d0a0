import type { Clock } from "../../clock.ts";

const intervalMilliseconds = 100;

/**
 * Calls `look` repeatedly during a download, and aborts the download when it throws: a registry can send data without end, and
 * skopeo would write until the disk is full.
 */
export async function downloadWatched(
  look: () => void,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  download: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const tooLarge = new AbortController();
  const watching = watch(look, clock, ended.signal).catch((error: unknown) => {
    // The end of the download also ends the watch.
    if (!ended.signal.aborted) tooLarge.abort(error);
  });
  try {
    await download(AbortSignal.any([signal, tooLarge.signal]));
  } finally {
    ended.abort();
    await watching;
  }
}

async function watch(look: () => void, clock: Clock, signal: AbortSignal): Promise<never> {
  for (;;) {
    await clock.sleep(intervalMilliseconds, signal);
    look();
  }
}
