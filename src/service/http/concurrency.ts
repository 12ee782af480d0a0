import { childOf } from "./deadline.ts";

/**
 * Runs `work` for all items, at most `limit` at a time, each taken from the iterable when a worker is free. The first failure
 * stops the others.
 */
export async function forEachConcurrently<T>(
  items: Iterable<T>,
  limit: number,
  parent: AbortSignal,
  work: (item: T, stop: AbortSignal) => Promise<void>,
): Promise<void> {
  parent.throwIfAborted();
  const stop = childOf(parent);
  const iterator = items[Symbol.iterator]();
  async function worker(): Promise<void> {
    while (!stop.signal.aborted) {
      const next = iterator.next();
      if (next.done === true) return;
      await work(next.value, stop.signal);
    }
  }
  const workers = Array.from({ length: limit }, () =>
    worker().catch((error: unknown) => {
      // Later failures are caused by the abort itself.
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
