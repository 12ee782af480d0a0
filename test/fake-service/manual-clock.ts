import type { Clock } from "../../src/clock.ts";

/** A clock that stands still until `advance` is called. */
export interface ManualClock extends Clock {
  /** The durations of all sleeps so far. */
  readonly sleeps: number[];
  /** Lets time pass. Wakes sleepers in order, and after each lets other code run. */
  advance(milliseconds: number): Promise<void>;
  /** Resolves once there is a sleeper, with the given duration if there is one. */
  sleeping(milliseconds?: number): Promise<void>;
}

interface Sleeper {
  due: number;
  milliseconds: number;
  wake(): void;
}

/** Sleeps that `skips` accepts end at once and move the time; all other sleeps (deadlines) need `advance`. */
export function createManualClock(skips: (milliseconds: number) => boolean = () => false): ManualClock {
  let now = Date.UTC(2026, 0, 1);
  const sleepers = new Set<Sleeper>();
  const sleeps: number[] = [];

  return {
    sleeps,
    now: () => now,
    sleep(milliseconds, signal) {
      return new Promise<void>((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        if (skips(milliseconds)) {
          sleeps.push(milliseconds);
          now += Math.ceil(milliseconds);
          // A sleep in a loop must not block all other code.
          setImmediate(resolve);
          return;
        }
        sleeps.push(milliseconds);
        const abort = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const sleeper: Sleeper = {
          due: now + milliseconds,
          milliseconds,
          wake() {
            sleepers.delete(sleeper);
            signal?.removeEventListener("abort", abort);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", abort, { once: true });
      });
    },
    async advance(milliseconds) {
      const target = now + milliseconds;
      for (;;) {
        const next = [...sleepers].sort((a, b) => a.due - b.due)[0];
        if (next === undefined || next.due > target) break;
        now = Math.max(now, next.due);
        next.wake();
        await Bun.sleep(0);
      }
      now = target;
      await Bun.sleep(0);
    },
    async sleeping(milliseconds) {
      const isAwaited = (sleeper: Sleeper) =>
        milliseconds === undefined || sleeper.milliseconds === milliseconds;
      while (![...sleepers].some(isAwaited)) await Bun.sleep(1);
    },
  };
}
