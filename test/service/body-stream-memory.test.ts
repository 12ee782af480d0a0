import { expect, test } from "bun:test";
import { watchedBody } from "../../src/service/http/body-stream.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

test("a body that has passed is not kept until its end", async () => {
  const count = 200;
  const passed: WeakRef<Uint8Array>[] = [];
  const stop = new AbortController();
  const body = watchedBody(
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        // A source that makes the reader wait, as a socket does.
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

test("a body that waits ends with the request, whatever its source does", async () => {
  const stop = new AbortController();
  const body = watchedBody(new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) }), {
    clock: createManualClock(),
    stop: { signal: stop.signal, abort: (reason) => stop.abort(reason), release: () => {} },
    explain: (error) => error,
  });
  const read = body.getReader().read();
  stop.abort(new Error("interrupted"));
  expect(read).rejects.toThrow("interrupted");
});
