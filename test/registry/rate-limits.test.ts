/** Registries that limit requests: what one client is told holds for all of the process. */
import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/clock.ts";
import { openBlobStore } from "../../src/registry/open-blob-store.ts";
import { createRateLimits } from "../../src/registry/rate-limits.ts";
import { startFakeRegistry } from "./fake-registry.ts";

const { signal } = new AbortController();

/** A clock that stands still, except while somebody sleeps: then it goes to the first end of a sleep. */
function createTestClock() {
  let time = 1_000_000;
  const sleeping: { until: number; wake: () => void }[] = [];
  const clock: Clock = {
    now: () => time,
    sleep: (milliseconds, given) =>
      milliseconds >= 60_000
        ? systemClock.sleep(milliseconds, given)
        : new Promise((wake) => sleeping.push({ until: time + milliseconds, wake })),
  };
  return {
    clock,
    now: () => time,
    /** Goes on to the next end of a sleep. */
    pass() {
      const next = Math.min(...sleeping.map(({ until }) => until));
      if (!Number.isFinite(next)) return;
      time = next;
      for (const { wake } of sleeping.splice(0).filter((each) => each.until <= next || !sleeping.push(each)))
        wake();
    },
  };
}

test("requests to a registry that takes no more for some time wait for it together, and none is refused often", async () => {
  const { clock, now, pass } = createTestClock();
  /** What each second of the registry's clock has taken, and the requests that it has refused. */
  const taken = new Map<number, number>();
  const refused = new Map<string, number>();
  await using registry = startFakeRegistry(({ target }) => {
    if (target === "/v2/") return undefined;
    const second = Math.floor(now() / 2000);
    const count = taken.get(second) ?? 0;
    taken.set(second, count + 1);
    if (count < 5)
      return new Response(null, { headers: { "docker-content-digest": `sha256:${"a".repeat(64)}` } });
    refused.set(target, (refused.get(target) ?? 0) + 1);
    return new Response(null, { status: 429, headers: { "retry-after": "2" } });
  });
  const names = Array.from({ length: 40 }, (_, at) => `team/app-${at}`);
  let left = names.length;
  const asked = Promise.all(
    names.map(async (name) => {
      const store = openBlobStore(`docker://${registry.host}/${name}`, { fetch, clock, environment: {} });
      await store.findDigest("latest", signal);
      left -= 1;
    }),
  );
  while (left > 0) {
    await Bun.sleep(2);
    pass();
  }
  await asked;
  // The first 35 were under way before the first refusal. If each waited for itself alone, it would be 140.
  expect(refused.values().reduce((sum, count) => sum + count, 0)).toBeLessThan(60);
  expect(Math.max(...refused.values())).toBeLessThan(5);
});

test("a host that refuses requests holds back no other, and a wait for it ends with its signal", async () => {
  const { clock } = createTestClock();
  const limits = createRateLimits(clock);
  const leave = await limits.enter("one.example", true, signal);
  leave({ refusedFor: 30_000 });
  (await limits.enter("other.example", true, signal))("answered");
  const stopping = new AbortController();
  const held = limits.enter("one.example", true, signal);
  const second = limits.enter("one.example", true, stopping.signal);
  stopping.abort(new Error("stopped"));
  await expect(second).rejects.toThrow("stopped");
  const isHeld = await Promise.race([held.then(() => false), Bun.sleep(20).then(() => true)]);
  expect(isHeld).toBe(true);
});

test("hours are waited for by nobody", async () => {
  const { clock } = createTestClock();
  const limits = createRateLimits(clock);
  const leave = await limits.enter("one.example", true, signal);
  leave({ refusedFor: 3_600_000 });
  await limits.enter("one.example", true, signal);
});

test("a request whose body is read from the same host takes no place from that reading", async () => {
  const { clock } = createTestClock();
  const limits = createRateLimits(clock);
  const refused = await limits.enter("one.example", true, signal);
  const upload = await limits.enter("one.example", false, signal);
  refused({ refusedFor: 0 });
  const reading = await limits.enter("one.example", true, signal);
  reading("answered");
  upload("answered");
});

test("a request without an answer lets no more requests through", async () => {
  const { clock } = createTestClock();
  const limits = createRateLimits(clock);
  (await limits.enter("one.example", true, signal))({ refusedFor: 0 });
  for (let count = 0; count < 5; count++) (await limits.enter("one.example", true, signal))("failed");
  await limits.enter("one.example", true, signal);
  const second = limits.enter("one.example", true, signal);
  const isHeld = await Promise.race([second.then(() => false), Bun.sleep(20).then(() => true)]);
  expect(isHeld).toBe(true);
});
