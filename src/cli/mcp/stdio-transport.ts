import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CancelledNotificationSchema,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import type { Runtime } from "../process/runtime.ts";

/** Messages as lines of standard input and output. The SDK's own transport uses the process's streams directly. */
interface StdioTransport extends Transport {
  /** Resolves at the end of standard input. Rejects with the signal's reason. */
  readonly ended: Promise<void>;
}

/**
 * Time after the end of standard input in which pending requests can still be answered, for a client that writes some requests
 * and ends. Later ones are cancelled.
 */
const lastAnswersMilliseconds = 500;

/** `redact` removes from every message what must not leave the process. */
export function createStdioTransport(
  { stdin, stdout, signal, clock }: Pick<Runtime, "stdin" | "stdout" | "signal" | "clock">,
  redact: (text: string) => string,
): StdioTransport {
  const buffer = new ReadBuffer();
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  /** Ids of requests without a response yet. */
  const asked = new Set<RequestId>();
  let onAnswered = () => {};

  async function read(): Promise<void> {
    for await (const chunk of stdin.stream()) {
      try {
        buffer.append(Buffer.from(chunk));
      } catch (error) {
        tell(error);
      }
      while (deliverNext());
    }
    if (asked.size === 0) return;
    const answered = new Promise<void>((done) => {
      onAnswered = done;
    });
    await Promise.race([answered, clock.sleep(lastAnswersMilliseconds)]);
  }

  /** False if no complete line is left. A line that is not a valid message is skipped and reported. */
  function deliverNext(): boolean {
    try {
      const message = buffer.readMessage();
      if (message === null) return false;
      if (isJSONRPCRequest(message)) asked.add(message.id);
      // A cancelled request gets no response.
      const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId;
      if (cancelled !== undefined) asked.delete(cancelled);
      transport.onmessage?.(message);
    } catch (error) {
      tell(error);
    }
    return true;
  }

  function tell(error: unknown): void {
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
      if (!("id" in message) || message.id === undefined || !asked.delete(message.id)) return;
      if (asked.size === 0) onAnswered();
    },
    async close() {
      transport.onclose?.();
    },
  };
  // The server awaits it; a signal may come before that.
  ended.catch(() => undefined);
  return transport;
}
