/** A clock, passed in wherever time is needed, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a monotonic clock, with fractions: nobody sets it while this process runs. */
  steady?(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason as soon as that is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/**
 * Returns a time for the measurement of durations, in milliseconds. `now` jumps if somebody sets the machine's clock, or if the
 * machine was suspended: a limit would be over at once, or not for hours.
 */
export function steadyTime(clock: Pick<Clock, "now" | "steady">): number {
  return clock.steady?.() ?? clock.now();
}

/** The maximum delay of a timer: 24 days. A longer one would fire at once. */
const maxMilliseconds = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  steady: () => performance.timeOrigin + performance.now(),
  async sleep(milliseconds, signal) {
    let left = milliseconds;
    for (; left > maxMilliseconds; left -= maxMilliseconds) await waitForTimer(maxMilliseconds, signal);
    await waitForTimer(left, signal);
  },
};

function waitForTimer(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Converts seconds since 1970 for the functions of `node:fs` that set times. They take a negative number, a time before 1970, for the
 * present, but accept it as text.
 */
export function fileTime(seconds: number): number | string {
  return seconds < 0 ? String(seconds) : seconds;
}

/** Returns whether seconds since 1970 are in the range of JavaScript's dates, which ends in the year 275760. Files may have any time. */
export function isDate(seconds: number): boolean {
  return Math.abs(seconds) <= 8.64e12;
}
