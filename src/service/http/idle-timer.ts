import { type Clock, steadyTime } from "../../clock.ts";

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

/** Made once: creating an error with a stack for each timer would be a good part of a small request's time. */
const isOver = new Error("the timer was stopped");

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
    stop: () => over.abort(isOver),
  };
}
