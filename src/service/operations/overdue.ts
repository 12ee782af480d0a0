/** Limits the wait for an operation that the service should have ended long ago. */
import { type Clock, steadyTime } from "../../clock.ts";
import type { ServiceNotice } from "../http/attempt.ts";
import { childOf } from "../http/deadline.ts";
import { OverdueError } from "../http/errors.ts";
import type { EventListener } from "../service.ts";

interface OverdueOptions {
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
  /** The request's timeout: the service ends the operation by then. */
  timeoutSeconds: number;
  /** True while the operation is queued, which does not count. */
  isQueued(): Promise<boolean>;
  /** Until when the operation has waited for what its command needs, which does not count either, in the clock's steady time. */
  heldUntil: () => number | undefined;
}

/** The service ends an operation by the request's timeout; this is the time that ending it may take. */
export const graceMilliseconds = 60_000;
/** A busy service may queue operations, but not for this long. */
const maxQueuedMilliseconds = 24 * 60 * 60 * 1000;

/**
 * Runs `work`, which waits for the operation, with a signal. The signal is aborted with an OverdueError at twice the timeout, but
 * not before the timeout and two graces. A warning comes earlier, at the timeout and one grace.
 */
export async function withTimeLimit<T>(
  operation: string,
  options: OverdueOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const child = childOf(options.signal);
  const over = new AbortController();
  watch(operation, options, over.signal).then(child.abort, () => undefined);
  try {
    return await work(child.signal);
  } finally {
    over.abort();
    child.release();
  }
}

/** Notes how long the service fetches layers before it starts a command; `listener` of the events is told as well. */
export function watchHold(
  clock: Clock,
  listener: EventListener | undefined,
): { listener: EventListener; heldUntil: () => number | undefined } {
  let last: number | undefined;
  let isHeld = false;
  let hasStarted = false;
  return {
    listener: {
      ...listener,
      onProgress(message) {
        last = steadyTime(clock);
        isHeld = !hasStarted;
        listener?.onProgress?.(message);
      },
      onStart() {
        if (isHeld) last = steadyTime(clock);
        isHeld = false;
        hasStarted = true;
        listener?.onStart?.();
      },
    },
    heldUntil: () => (isHeld ? steadyTime(clock) : last),
  };
}

/** Resolves with the reason to stop waiting; rejects once `over` is aborted. */
async function watch(operation: string, options: OverdueOptions, over: AbortSignal): Promise<OverdueError> {
  const { clock, onNotice, timeoutSeconds, isQueued, heldUntil } = options;
  const timeout = timeoutSeconds * 1000;
  const warnAfter = timeout + graceMilliseconds;
  const endAfter = Math.max(timeout * 2, warnAfter + graceMilliseconds);
  const began = steadyTime(clock);
  // An operation that is queued for less than this has its whole timeout left until twice the timeout.
  await pass(timeout);
  for (;;) {
    const left = (heldUntil() ?? began) + timeout - steadyTime(clock);
    if (left <= 0 || steadyTime(clock) - began >= maxQueuedMilliseconds) break;
    await pass(left);
  }
  let wasQueued = false;
  while (await isQueued().catch(() => false)) {
    over.throwIfAborted();
    if (steadyTime(clock) - began >= maxQueuedMilliseconds)
      return new OverdueError(`operation ${operation} has been queued for a day`, {});
    wasQueued = true;
    await pass(graceMilliseconds);
  }
  over.throwIfAborted();
  if (wasQueued) await pass(timeout);
  await pass(graceMilliseconds);
  const allowed = `its timeout is ${formatSeconds(timeout)}`;
  onNotice({
    level: "warn",
    text: `operation ${operation} should have ended by now: ${allowed}; waiting for another ${formatSeconds(endAfter - warnAfter)}`,
  });
  await pass(endAfter - warnAfter);
  const message = `operation ${operation} has not ended after ${formatSeconds(endAfter)}, although ${allowed}`;
  return new OverdueError(message, {
    hint: `This is an error of the service: it does not report the operation's end. \`bough show ${operation}\` asks it again.`,
  });

  /** Sleeps in parts, because a clock sleeps for some weeks at most. */
  async function pass(milliseconds: number): Promise<void> {
    const until = steadyTime(clock) + milliseconds;
    for (let left = milliseconds; left > 0; left = until - steadyTime(clock)) await clock.sleep(left, over);
  }
}

function formatSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}
