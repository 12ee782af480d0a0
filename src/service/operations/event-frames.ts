/** Splits an event stream into frames. Each frame and the whole stream are limited. */
import { createParser } from "eventsource-parser";
import type { EventFrame } from "./received-events.ts";

/** True for the headers of a stream of server-sent events. */
export function isEventStream(headers: Headers): boolean {
  return /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
}

/** Thrown for a stream that is too large for any operation. */
export class ExcessiveEventsError extends Error {
  override readonly name = "ExcessiveEventsError";
}

/** Maximum characters of one event, or of a line that does not end. */
const maxEventCharacters = 16 * 1024 * 1024;
/** Maximum bytes of one connection. A request limits its output; this is enough for that output in small events. */
const maxStreamBytes = 1024 * 1024 * 1024;

interface FrameReader {
  /** Throws an ExcessiveEventsError. */
  feed(bytes: Uint8Array): void;
}

export function createFrameReader(onEvent: (frame: EventFrame) => void): FrameReader {
  let read = 0;
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent,
    onError(error) {
      if (error.type !== "max-buffer-size-exceeded") return;
      throw new ExcessiveEventsError(`an event of more than ${maxEventCharacters / 2 ** 20} MiB`);
    },
  });
  const decoder = new TextDecoder();
  return {
    feed(bytes) {
      read += bytes.byteLength;
      if (read > maxStreamBytes)
        throw new ExcessiveEventsError(`events of more than ${maxStreamBytes / 2 ** 30} GiB`);
      parser.feed(decoder.decode(bytes, { stream: true }));
    },
  };
}
