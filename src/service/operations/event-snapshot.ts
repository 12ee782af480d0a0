/** Reads the events of an operation so far, without waiting for later ones. */
import { BoughError } from "../../errors.ts";
import type { Transport } from "../http/transport.ts";
import type { EventListener } from "../service.ts";
import { createFrameReader, ExcessiveEventsError, isEventStream } from "./event-frames.ts";
import { withoutEvents } from "./event-stream.ts";
import { createReceivedEvents } from "./received-events.ts";

export interface EventSnapshots {
  /** False if this service, or this operation, has no readable events. */
  readEventsSoFar(operation: string, listener: EventListener): Promise<boolean>;
}

/** Statuses of a service, or an operation, without events. */
const noEvents = [410, 425, ...withoutEvents];

export function createEventSnapshots(transport: Transport, signal: AbortSignal): EventSnapshots {
  return {
    async readEventsSoFar(operation, listener) {
      const parts = {
        method: "GET" as const,
        ...transport.operations.eventsOf(operation),
        headers: { accept: "text/event-stream" },
      };
      const { headers, body } = await transport.call({
        ...parts,
        repeatable: true,
        expects: "stream",
        handles: noEvents,
        signal,
      });
      if (!(body instanceof ReadableStream)) return false;
      const stream = body as ReadableStream<Uint8Array>;
      if (!isEventStream(headers)) {
        await stream.cancel();
        return false;
      }
      const log = createReceivedEvents(listener);
      const frames = createFrameReader((frame) => void log.add(frame));
      try {
        for await (const chunk of stream) frames.feed(chunk);
      } catch (error) {
        if (!(error instanceof ExcessiveEventsError)) throw error;
        throw new BoughError(`${transport.nameOf(parts)} answered with ${error.message}`, {
          hint: "bough does not read more than that. Only the output before it is shown.",
        });
      }
      return true;
    },
  };
}
