/** The events of an operation so far, without waiting for those to come. */
import { createParser } from "eventsource-parser";
import { createEventLog } from "./event-log.ts";
import type { EventListener } from "./service.ts";
import type { Transport } from "./transport.ts";

export interface EventSnapshots {
  /** False where this service, or this operation, has no events to be read. */
  readEventsSoFar(operation: string, listener: EventListener): Promise<boolean>;
}

export function createEventSnapshots(transport: Transport, signal: AbortSignal): EventSnapshots {
  return {
    async readEventsSoFar(operation, listener) {
      const parts = {
        method: "GET" as const,
        ...transport.operations.eventsOf(operation),
        headers: { accept: "text/event-stream" },
      };
      const response = await transport.open(parts, signal);
      const type = response.headers.get("content-type") ?? "";
      if (response.status !== 200 || !/^text\/event-stream\b/i.test(type)) {
        await response.body?.cancel();
        return false;
      }
      const log = createEventLog(listener);
      const parser = createParser({ onEvent: (frame) => void log.add(frame) });
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
      return true;
    },
  };
}
