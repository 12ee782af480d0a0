/** Standard input and output as the transport of `bough mcp`. */
import { expect, test } from "bun:test";
import { createStdioTransport } from "../../src/cli/mcp/stdio-transport.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

async function* lines(...messages: object[]): AsyncGenerator<Uint8Array> {
  for (const message of messages) yield Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

const request = { id: 1, method: "tools/call", params: { name: "build" } };
const cancellation = { method: "notifications/cancelled", params: { requestId: 1 } };

test.each([
  ["a request without a response is waited for", [request], true],
  ["a cancelled request is not waited for, because it gets no response", [request, cancellation], false],
])("after the end of standard input, %s", async (_, messages, waits) => {
  const clock = createManualClock();
  const transport = createStdioTransport(
    {
      stdin: { isTerminal: false, stream: () => lines(...messages) },
      stdout: { isTerminal: false, columns: undefined, write: () => true },
      signal: new AbortController().signal,
      clock,
    } as unknown as Parameters<typeof createStdioTransport>[0],
    (text) => text,
  );
  await transport.start();
  let hasEnded = false;
  const ended = transport.ended.then(() => {
    hasEnded = true;
  });
  if (waits) {
    await Promise.race([ended, clock.sleeping(500)]);
    expect(hasEnded).toBe(false);
    await clock.advance(500);
  }
  await ended;
  expect(clock.sleeps).toEqual(waits ? [500] : []);
});
