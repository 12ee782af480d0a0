/** Frames out of an event stream's bytes, each of them and all of them together bounded. */
import { createParser } from "eventsource-parser";
import type { EventFrame } from "./received-events.ts";

/** Thrown for a stream that is larger than any operation's should be. */
export class ExcessiveEventsError extends Error {
  override readonly name = "ExcessiveEventsError";
}

/** Characters of one event, or of a line that does not end. */
const maxEventCharacters = 16 * 1024 * 1024;
/** Bytes of one connection. A request bounds the output; this is what it may come to in small events. */
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
