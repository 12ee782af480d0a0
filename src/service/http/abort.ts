/** Signals that end a part of the work without ending the whole. */
import type { Clock } from "../../clock.ts";

/**
 * A controller that is aborted together with `parent`, or `graceMilliseconds` after it. To be released when its work
 * is done: a build's signal outlives thousands of requests, and would hold on to all of them.
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

/** Rejects with the signal's reason as soon as it is aborted, whether or not `work` listens to it. */
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
