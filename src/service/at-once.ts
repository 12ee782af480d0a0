import { childOf } from "./abort.ts";

/** Runs `work` for all items, at most `limit` at a time; the first failure stops the others. */
export async function forEachAtOnce<T>(
  items: readonly T[],
  limit: number,
  parent: AbortSignal,
  work: (item: T, stop: AbortSignal) => Promise<void>,
): Promise<void> {
  parent.throwIfAborted();
  const stop = childOf(parent);
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length && !stop.signal.aborted) {
      const item = items[next++];
      if (item !== undefined) await work(item, stop.signal);
    }
  }
  const workers = Array.from({ length: Math.min(limit, items.length) }, () =>
    worker().catch((error: unknown) => {
      // Later failures are the stop's own doing.
      if (!stop.signal.aborted) stop.abort(error);
    }),
  );
  try {
    await Promise.all(workers);
  } finally {
    stop.release();
  }
  stop.signal.throwIfAborted();
}
