/** Operations that never end: the waiting time, the warning and the cancellation. */
import { describe, expect, onTestFinished, test } from "bun:test";
import { OverdueError } from "../../src/service/http/errors.ts";
import { watchHold, withTimeLimit } from "../../src/service/operations/ending.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { clientOf, rejection } from "./client.ts";

/** Waits for an operation that never ends. */
function wait(
  timeoutSeconds: number,
  isQueued = async () => false,
  heldUntil: () => number | undefined = () => undefined,
) {
  const clock = createManualClock();
  const interrupt = new AbortController();
  const warnings: string[] = [];
  const onNotice = ({ text }: { text: string }) => void warnings.push(text);
  const options = { clock, signal: interrupt.signal, onNotice, timeoutSeconds, isQueued, heldUntil };
  const failed = rejection(
    withTimeLimit("op", options, (signal) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      return promise;
    }),
  );
  return { clock, interrupt, warnings, failed };
}

test.each([
  [600, 660, 1200],
  [3600, 3660, 7200],
  [5, 65, 125],
])(
  "an operation with a timeout of %d s causes a warning after %d s and fails after %d s",
  async (timeout, warning, end) => {
    const { clock, warnings, failed } = wait(timeout);
    await clock.advance(warning * 1000 - 1);
    expect(warnings).toEqual([]);
    await clock.advance(1);
    expect(warnings).toEqual([
      `operation op should have ended by now: its timeout is ${timeout} s; waiting for another ${end - warning} s`,
    ]);
    await clock.advance((end - warning) * 1000 - 1);
    expect(await Promise.race([failed, "waits"])).toBe("waits");
    await clock.advance(1);
    const error = await failed;
    expect(error).toBeInstanceOf(OverdueError);
    expect(error).toMatchObject({
      message: `operation op has not ended after ${end} s, although its timeout is ${timeout} s`,
    });
    expect(warnings).toHaveLength(1);
  },
);

test("time in the queue does not count", async () => {
  let isQueued = true;
  const { clock, warnings, failed } = wait(600, async () => isQueued);
  await clock.advance(3 * 3_600_000);
  isQueued = false;
  await clock.advance(720_000 - 1);
  expect(warnings).toEqual([]);
  await clock.advance(1);
  expect(warnings).toHaveLength(1);
  await clock.advance(540_000 - 1);
  expect(await Promise.race([failed, "waits"])).toBe("waits");
  await clock.advance(1);
  expect(await failed).toBeInstanceOf(OverdueError);
});

describe("time in which layers are fetched for a command", () => {
  function follow(timeoutSeconds: number) {
    let hold: ReturnType<typeof watchHold> | undefined;
    const waiting = wait(timeoutSeconds, undefined, () => hold?.heldUntil());
    hold = watchHold(waiting.clock, undefined);
    return { ...waiting, events: hold.listener };
  }

  test.each([
    // The same with and without messages until the start.
    [600, 3600, [10, 3000]],
    [600, 500, [10]],
    [5, 400, [0, 399]],
  ])("with a timeout of %d s, %d s do not count", async (timeout, held, progress) => {
    const { clock, warnings, failed, events } = follow(timeout);
    let now = 0;
    for (const at of progress) {
      await clock.advance((at - now) * 1000);
      events.onProgress?.("Downloaded 1 MB");
      now = at;
    }
    await clock.advance((held - now) * 1000);
    events.onStart?.();
    await clock.advance((timeout + 60) * 1000 - 1);
    expect(warnings).toEqual([]);
    await clock.advance(1);
    expect(warnings).toHaveLength(1);
    await clock.advance(Math.max(timeout - 60, 60) * 1000 - 1);
    expect(await Promise.race([failed, "waits"])).toBe("waits");
    await clock.advance(1);
    expect(await failed).toBeInstanceOf(OverdueError);
  });

  test("counts if it never ends", async () => {
    const { clock, failed, events } = follow(600);
    events.onProgress?.("Fetching 1 layer");
    await clock.advance(23 * 3_600_000);
    expect(await Promise.race([failed, "waits"])).toBe("waits");
    await clock.advance(2 * 3_600_000);
    expect(await failed).toBeInstanceOf(OverdueError);
  });
});

test("an operation queued for a day fails", async () => {
  const { clock, warnings, failed } = wait(600, async () => true);
  await clock.advance(23 * 3_600_000);
  expect(await Promise.race([failed, "waits"])).toBe("waits");
  await clock.advance(2 * 3_600_000);
  expect(await failed).toMatchObject({ message: "operation op has been queued for a day" });
  expect(warnings).toEqual([]);
});

test("an interruption ends the wait at once", async () => {
  const { interrupt, failed } = wait(600);
  const reason = new Error("interrupted");
  interrupt.abort(reason);
  expect(await failed).toBe(reason);
});

describe.each<[what: string, server: FakeServiceOptions]>([
  ["events", {}],
  ["polling", { events: false }],
])("a service with %s", (_, server) => {
  async function start(timeout: number) {
    const fake = await startFakeService({ run: () => ({ until: new Promise(() => {}) }), ...server });
    onTestFinished(() => fake.close());
    const clock = createManualClock();
    const client = clientOf(fake.url, { clock });
    const image = fake.state.addImage("base:latest");
    const request = { image, command: "make", shell: true, cwd: "/", disposable: false, timeout };
    return { ...client, fake, clock, operation: await client.service.spawn(request) };
  }

  test("an operation that never ends causes a warning, then is cancelled", async () => {
    const { fake, clock, service, operation, notices } = await start(60);
    const failed = rejection(service.follow(operation));
    // The clock advances in steps that leave time for each request.
    for (let seconds = 0; seconds < 200; seconds++) {
      await clock.advance(1000);
      await Bun.sleep(3);
    }
    expect(await failed).toBeInstanceOf(OverdueError);
    const warnings = notices.filter(({ level }) => level === "warn").map(({ text }) => text);
    expect(warnings.join("\n")).toContain(`operation ${operation} should have ended by now`);
    expect(warnings.at(-1)).toBe(`operation ${operation} is cancelled`);
    expect(fake.state.operations.get(operation)?.record.status).toBe("CANCELLED");
  });

  test("an operation of another client has no time limit", async () => {
    const { fake, operation } = await start(1000);
    const clock = createManualClock();
    const { service, interrupt } = clientOf(fake.url, { clock });
    const failed = rejection(service.follow(operation));
    while (fake.requestsTo(/^GET \/v1\/operations/).length === 0) await Bun.sleep(1);
    expect(clock.sleeps.filter((milliseconds) => milliseconds > 60_000)).toEqual([]);
    const reason = new Error("interrupted");
    interrupt.abort(reason);
    expect(await failed).toBe(reason);
  });
});
