import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CancelledNotificationSchema,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import type { Runtime } from "../process/runtime.ts";

/** A transport with messages as lines, on given streams. The SDK's own transport always uses the streams of the process. */
interface StdioTransport extends Transport {
  /** Resolves at the end of standard input. Rejects with the signal's reason. */
  readonly ended: Promise<void>;
}

/**
 * The time that pending requests have after the end of standard input, for a client that writes some requests and ends. Then they are
 * cancelled.
 */
const drainMilliseconds = 500;

/** `redact` removes secrets from every message. */
export function createStdioTransport(
  { stdin, stdout, signal, clock }: Pick<Runtime, "stdin" | "stdout" | "signal" | "clock">,
  redact: (text: string) => string,
): StdioTransport {
  const buffer = new ReadBuffer();
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  /** Ids of requests without a response yet. */
  const pendingRequests = new Set<RequestId>();
  let onAllAnswered = () => {};

  async function read(): Promise<void> {
    for await (const chunk of stdin.stream()) {
      try {
        buffer.append(Buffer.from(chunk));
      } catch (error) {
        reportError(error);
      }
      while (deliverNext());
    }
    if (pendingRequests.size === 0) return;
    const answered = new Promise<void>((done) => {
      onAllAnswered = done;
    });
    await Promise.race([answered, clock.sleep(drainMilliseconds)]);
  }

  /** Delivers a message; returns false if no complete line is left. An invalid message is reported and skipped. */
  function deliverNext(): boolean {
    try {
      const message = buffer.readMessage();
      if (message === null) return false;
      if (isJSONRPCRequest(message)) pendingRequests.add(message.id);
      // A cancelled request gets no response.
      const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId;
      if (cancelled !== undefined) pendingRequests.delete(cancelled);
      transport.onmessage?.(message);
    } catch (error) {
      reportError(error);
    }
    return true;
  }

  function reportError(error: unknown): void {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }

  const transport: StdioTransport = {
    ended,
    async start() {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      read().then(resolve, reject);
    },
    async send(message: JSONRPCMessage) {
      stdout.write(redact(serializeMessage(message)));
      if (!("id" in message) || message.id === undefined || !pendingRequests.delete(message.id)) return;
      if (pendingRequests.size === 0) onAllAnswered();
    },
    async close() {
      transport.onclose?.();
    },
  };
  // A signal may come before the server awaits the promise.
  ended.catch(() => undefined);
  return transport;
}
