import type { Clock } from "../clock.ts";

/** Why an attempt was ended by its own timer; a connection fault like any other. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/**
 * Runs `work` with a signal that is aborted with the parent's reason, or after `milliseconds`; then `work` rejects
 * with a DeadlineError.
 */
export async function withDeadline<T>(
  clock: Clock,
  milliseconds: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  const timer = new AbortController();
  const forward = () => controller.abort(parent.reason);
  parent.addEventListener("abort", forward, { once: true });
  clock.sleep(milliseconds, timer.signal).then(
    () => controller.abort(new DeadlineError(`no answer within ${milliseconds / 1000} s`)),
    () => undefined,
  );
  try {
    return await work(controller.signal);
  } finally {
    timer.abort();
    parent.removeEventListener("abort", forward);
  }
}
