/** Signals that end only a part of the work. */
import type { Clock } from "../../clock.ts";

/**
 * Returns a controller that is aborted together with `parent`, or after the grace time. Release it when its work is done: a
 * build's signal outlives thousands of requests, and would keep all of them in memory.
 */
export function childOf(parent: AbortSignal, grace?: { clock: Clock; milliseconds: number }) {
  const controller = new AbortController();
  const released = grace === undefined ? undefined : new AbortController();
  const forward = () => {
    if (grace === undefined) return controller.abort(parent.reason);
    grace.clock.sleep(grace.milliseconds, released?.signal).then(
      () => controller.abort(parent.reason),
      () => undefined,
    );
  };
  if (parent.aborted) forward();
  else parent.addEventListener("abort", forward, { once: true });
  return {
    signal: controller.signal,
    abort: (reason: unknown) => controller.abort(reason),
    release() {
      parent.removeEventListener("abort", forward);
      released?.abort();
    },
  };
}

/** Rejects with the signal's reason as soon as it is aborted, even if `work` ignores the signal. */
export async function abandonable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
