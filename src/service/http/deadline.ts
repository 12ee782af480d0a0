/** Work with a time limit. */
import { type Clock, steadyTime } from "../../clock.ts";

/** Thrown when a time limit is over. To the caller it is a connection fault like any other. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

interface DeadlineOptions {
  clock: Clock;
  milliseconds: number;
  parent: AbortSignal;
  /** Time for running work to end after the parent is aborted. */
  graceMilliseconds?: number | undefined;
}

/** A time limit for each of several successive requests. */
export interface RequestDeadline {
  /**
   * Runs `work` with a signal that is aborted with a DeadlineError when its time is over, or with the parent. Rejects as soon as
   * that happens, even if `work` ignores the signal.
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Stops the timer. Nothing may run afterwards. */
  release(): void;
}

/**
 * The requests share one signal and one timer until one of them takes too long: a timer for each would be a good part of a small
 * request's time.
 */
export function createRequestDeadline(options: DeadlineOptions): RequestDeadline {
  let watch: Watch | undefined;
  const release = () => {
    watch?.release();
    watch = undefined;
  };
  return {
    async run(work) {
      options.parent.throwIfAborted();
      watch ??= startWatch(options);
      const own = watch;
      try {
        return await own.over(work(own.signal));
      } finally {
        if (own.signal.aborted && watch === own) release();
      }
    },
    release,
  };
}

/** Runs one piece of work with its own time limit. */
export async function withDeadline<T>(
  options: DeadlineOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = createRequestDeadline(options);
  try {
    return await deadline.run(work);
  } finally {
    deadline.release();
  }
}

type Watch = ReturnType<typeof startWatch>;

/** Watches one piece of work at a time, until one takes too long. */
function startWatch({ clock, milliseconds, parent, graceMilliseconds }: DeadlineOptions) {
  const grace = graceMilliseconds === undefined ? undefined : { clock, milliseconds: graceMilliseconds };
  const child = childOf(parent, grace);
  const { signal } = child;
  let giveUp: ((reason: unknown) => void) | undefined;
  signal.addEventListener("abort", () => giveUp?.(signal.reason), { once: true });
  let timer: IdleTimer | undefined;
  const startTimer = () =>
    startIdleTimer(clock, milliseconds, () =>
      child.abort(new DeadlineError(`no answer within ${milliseconds / 1000} s`)),
    );
  return {
    signal,
    async over<T>(work: Promise<T>): Promise<T> {
      if (timer === undefined) timer = startTimer();
      else timer.touch();
      // A race against a single promise for all work would keep every result until the end.
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      giveUp = reject;
      work.then(resolve, reject);
      try {
        return await promise;
      } finally {
        giveUp = undefined;
        timer.pause();
      }
    },
    release() {
      timer?.stop();
      child.release();
    },
  };
}

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
export async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
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

/** Detects that something has stopped. */
export interface IdleTimer {
  /** Restarts the time, also after a pause. */
  touch(): void;
  /** Stops the time until the next touch or resume. */
  pause(): void;
  /** Continues the time; what has passed before the pause counts. */
  resume(): void;
  stop(): void;
}

/** One error for all timers: creating one with a stack for each would be a good part of a small request's time. */
const timerStopped = new Error("the timer was stopped");

/** Calls `onIdle` once, when `milliseconds` have passed since the last touch. */
export function startIdleTimer(clock: Clock, milliseconds: number, onIdle: () => void): IdleTimer {
  const over = new AbortController();
  let last = steadyTime(clock);
  let pausedAt: number | undefined;
  let hasChanged = false;
  async function watch(): Promise<void> {
    for (let left = milliseconds; left > 0; ) {
      hasChanged = false;
      await clock.sleep(left, over.signal);
      if (pausedAt !== undefined) left = milliseconds;
      else left = hasChanged ? last + milliseconds - steadyTime(clock) : 0;
    }
    onIdle();
  }
  watch().catch(() => undefined);
  return {
    touch() {
      hasChanged = true;
      last = steadyTime(clock);
      pausedAt = undefined;
    },
    pause() {
      hasChanged = true;
      pausedAt ??= steadyTime(clock);
    },
    resume() {
      hasChanged = true;
      if (pausedAt !== undefined) last += steadyTime(clock) - pausedAt;
      pausedAt = undefined;
    },
    stop: () => over.abort(timerStopped),
  };
}
