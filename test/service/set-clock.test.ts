/** Somebody sets the machine's clock while bough waits: no limit is over at once, and none lasts for hours. */
import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/clock.ts";
import { startIdleTimer } from "../../src/service/http/deadline.ts";
import { graceMilliseconds, withTimeLimit } from "../../src/service/operations/ending.ts";

const hour = 3_600_000;

/** A clock on which a sleep takes no time. It is set by `jump` during the first sleep, halfway. */
function clockSetBy(jump: number, onFirstSleep: () => void = () => {}) {
  const sleeps: number[] = [];
  let passed = 0;
  let offset = 0;
  const clock: Clock = {
    now: () => passed + offset,
    steady: () => passed,
    async sleep(milliseconds, signal) {
      await systemClock.sleep(0, signal);
      sleeps.push(milliseconds);
      passed += milliseconds / 2;
      if (sleeps.length === 1) {
        onFirstSleep();
        offset = jump;
      }
      passed += milliseconds / 2;
    },
  };
  return { clock, sleeps };
}

test.each([-5 * hour, 5 * hour])("by %d ms: an idle timer measures from the last touch", async (jump) => {
  const { clock, sleeps } = clockSetBy(jump, () => timer.touch());
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const timer = startIdleTimer(clock, 1_000, resolve);
  await idle;
  expect(sleeps).toEqual([1_000, 500]);
});

test.each([-5 * hour, 5 * hour])("by %d ms: an operation may take as long as before", async (jump) => {
  const { clock, sleeps } = clockSetBy(jump);
  const options = {
    ...{ clock, signal: new AbortController().signal, timeoutSeconds: 600 },
    onNotice: () => {},
    isQueued: async () => false,
    heldUntil: () => undefined,
  };
  const never = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  await expect(withTimeLimit("op", options, never)).rejects.toThrow("has not ended after 1200 s");
  expect(sleeps).toEqual([600_000, graceMilliseconds, 600_000 - graceMilliseconds]);
});
