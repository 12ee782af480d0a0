/** Signals that end a part of the work without ending the whole. */
import type { Clock } from "../../clock.ts";

/** Why a part was ended by its own timer; to its caller a connection fault like any other. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** Made once: a reason of its own, with a stack, would be a good part of what a small request takes. */
const isOver = new DeadlineError("it is over");

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
      released?.abort(isOver);
    },
  };
}

/**
 * Runs `work` with a signal that is aborted after `milliseconds`, with a DeadlineError, or with the parent: then at
 * once, or once the grace for work under way is over.
 */
export async function withDeadline<T>(
  options: {
    clock: Clock;
    milliseconds: number;
    parent: AbortSignal;
    graceMilliseconds?: number | undefined;
  },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, milliseconds, parent, graceMilliseconds } = options;
  parent.throwIfAborted();
  const child = childOf(
    parent,
    graceMilliseconds === undefined ? undefined : { clock, milliseconds: graceMilliseconds },
  );
  const timer = new AbortController();
  clock.sleep(milliseconds, timer.signal).then(
    () => child.abort(new DeadlineError(`no answer within ${milliseconds / 1000} s`)),
    () => undefined,
  );
  try {
    return await abandonable(child.signal, work(child.signal));
  } finally {
    timer.abort(isOver);
    child.release();
  }
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
