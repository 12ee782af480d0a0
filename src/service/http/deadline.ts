/** Work with a time limit. */
import type { Clock } from "../../clock.ts";
import { childOf } from "./abort.ts";
import { type IdleTimer, startIdleTimer } from "./idle-timer.ts";

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
