/** Work that is given up where it takes too long. */
import type { Clock } from "../../clock.ts";
import { childOf } from "./abort.ts";
import { type IdleTimer, startIdleTimer } from "./idle-timer.ts";

/** Why a part was ended by its own timer; to its caller a connection fault like any other. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

interface DeadlineOptions {
  clock: Clock;
  milliseconds: number;
  parent: AbortSignal;
  /** Work under way when the parent is aborted is given this long. */
  graceMilliseconds?: number | undefined;
}

/** A time limit for each of a row of requests. */
export interface RequestDeadline {
  /**
   * Runs `work` with a signal that is aborted when its time is over, with a DeadlineError, or with the parent. Rejects as soon as
   * that happens, whether or not `work` listens to it.
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Nothing is run any more. */
  release(): void;
}

/**
 * As long as no request of the row takes too long they share one signal and one timer: one of its own would be a good part of what a
 * small request takes.
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

/** Runs one piece of work with a deadline of its own. */
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

/** Watches over one piece of work at a time, until the first that takes too long. */
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
      // A race against one promise for all would not do: that one would keep every result until the end.
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
