/** Follows an operation by its events, over as many connections as needed. */

import { BoughError } from "../../errors.ts";
import type { Transport } from "../http/transport.ts";
import type { EventListener, OutputChunk } from "../service.ts";
import {
  createFrameReader,
  ExcessiveEventsError,
  isEventStream,
  readEventStream,
  type StreamEnd,
  withoutEvents,
} from "./event-stream.ts";
import { lookAtOperation, maxRetryAfterMilliseconds, type PollingOptions, pollIntervals } from "./polling.ts";
import { createReceivedEvents, type ReceivedEvents } from "./received-events.ts";

/**
 * `unsupported`: this server has no events at all. `given up`: its streams break without a new event. In each case the record has the
 * rest.
 */
type EventsEnd = "ended" | "unsupported" | "given up";

/** Maximum number of successive breaks without a new event. */
const maxFruitlessBreaks = 4;

/**
 * Connects, and connects again if a stream breaks, until `completion`, or until the record says that the operation has ended.
 * Each chunk of output is reported once.
 */
export async function followEvents(
  options: PollingOptions,
  operation: string,
  log: ReceivedEvents,
  onOutput: (chunk: OutputChunk) => void,
): Promise<EventsEnd> {
  const { clock, signal, onNotice } = options;
  const reader = {
    log,
    onFrame(frame: Parameters<ReceivedEvents["add"]>[0]) {
      const chunk = log.add(frame);
      if (chunk !== undefined) onOutput(chunk);
    },
    look: () => nothingLeftToRead(options, operation),
  };
  let fruitlessBreaks = 0;
  for (const pause of pollIntervals()) {
    const before = log.lastId;
    const end: StreamEnd = await readEventStream(options, operation, reader);
    let wait = pause;
    switch (end.kind) {
      case "completed":
      case "ended":
      case "gone":
        return "ended";
      case "no such route":
        return log.lastId === undefined ? "unsupported" : "given up";
      case "not ready":
        wait = Math.min(end.waitMilliseconds ?? pause, maxRetryAfterMilliseconds);
        break;
      case "excessive": {
        const call = options.transport.nameOf({
          method: "GET",
          ...options.transport.operations.eventsOf(operation),
        });
        onNotice({
          level: "warn",
          text: `${call} responded with ${end.what}: the rest of its output is not read`,
        });
        return "given up";
      }
      case "broke":
        fruitlessBreaks = log.lastId === before ? fruitlessBreaks + 1 : 0;
        onNotice({
          level: "debug",
          text: `the event stream of operation ${operation} was interrupted: ${end.reason}`,
        });
        if (fruitlessBreaks === maxFruitlessBreaks) return "given up";
        break;
    }
    if (await nothingLeftToRead(options, operation)) return "ended";
    await clock.sleep(wait, signal);
  }
  return "given up";
}

/** True if the operation has ended and its record holds all of its output. */
async function nothingLeftToRead(options: PollingOptions, operation: string): Promise<boolean> {
  const { view } = await lookAtOperation(options, operation);
  return view.ended !== undefined && view.stdout?.truncated !== true && view.stderr?.truncated !== true;
}

/** Reads the events of an operation so far, without waiting for later ones. */
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
        throw new BoughError(`${transport.nameOf(parts)} responded with ${error.message}`, {
          hint: "bough does not read more than that. Only the output before it is shown.",
        });
      }
      return true;
    },
  };
}
