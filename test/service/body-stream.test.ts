/** The body of a response while it is read. */
import { expect, test } from "bun:test";
import { watchedBody } from "../../src/service/http/body-stream.ts";
import { childOf } from "../../src/service/http/deadline.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

test("the request's signal ends a pending read and the next one", async () => {
  const request = new AbortController();
  const silent = new ReadableStream<Uint8Array>({ pull: () => Promise.withResolvers<void>().promise });
  const stop = childOf(request.signal);
  const reader = watchedBody(silent, {
    clock: createManualClock(),
    stop,
    explain: (error) => error,
  }).getReader();
  const waiting = reader.read().catch(String);
  request.abort(new Error("stopped"));
  expect(await waiting).toBe("Error: stopped");
  expect(await reader.read().catch(String)).toBe("Error: stopped");
});
