import { expect, test } from "bun:test";
import { systemClock } from "../src/clock.ts";

test("a sleep longer than a timer can hold does not end at once", async () => {
  const stop = new AbortController();
  let ended = false;
  const sleep = systemClock.sleep(1e12, stop.signal).then(
    () => {
      ended = true;
    },
    () => {},
  );
  await systemClock.sleep(20);
  expect(ended).toBe(false);
  stop.abort();
  await sleep;
});

test("an aborted signal ends a sleep with its reason, before and during it", async () => {
  const reason = new Error("enough");
  await expect(systemClock.sleep(1e6, AbortSignal.abort(reason))).rejects.toBe(reason);
  const stop = new AbortController();
  const sleep = systemClock.sleep(1e6, stop.signal);
  stop.abort(reason);
  await expect(sleep).rejects.toBe(reason);
});
