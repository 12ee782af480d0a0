import { expect, test } from "bun:test";
import { watchedBody } from "../../src/service/http/body-stream.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

test("the part of a body that was read is not kept in memory", async () => {
  const count = 200;
  const passed: WeakRef<Uint8Array>[] = [];
  const stop = new AbortController();
  const body = watchedBody(
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        // The source makes the reader wait, as a socket does.
        await Promise.resolve();
        const chunk = new Uint8Array(64 * 1024).fill(1);
        passed.push(new WeakRef(chunk));
        controller.enqueue(chunk);
      },
    }),
    {
      clock: createManualClock(),
      stop: { signal: stop.signal, abort: (reason) => stop.abort(reason), release: () => {} },
      explain: (error) => error,
    },
  );
  const reader = body.getReader();
  for (let index = 0; index < count; index++) await reader.read();
  await Bun.sleep(0);
  Bun.gc(true);
  const kept = passed.filter((chunk) => chunk.deref() !== undefined).length;
  await reader.cancel();
  expect(passed.length).toBeGreaterThanOrEqual(count);
  expect(kept).toBeLessThan(count / 4);
});

test("a body that waits for its source ends with the request", async () => {
  const stop = new AbortController();
  const body = watchedBody(new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) }), {
    clock: createManualClock(),
    stop: { signal: stop.signal, abort: (reason) => stop.abort(reason), release: () => {} },
    explain: (error) => error,
  });
  const read = body.getReader().read();
  stop.abort(new Error("interrupted"));
  await expect(read).rejects.toThrow("interrupted");
});
