/** One connection to an operation's event stream. */

import { createParser } from "eventsource-parser";
import { type Clock, steadyTime } from "../../clock.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { cancelOnAbort } from "../../streams.ts";
import { unavailableStatuses } from "../capabilities.ts";
import { readBeginning } from "../http/bounded-body.ts";
import { childOf, DeadlineError } from "../http/deadline.ts";
import { parseRetryAfter, retryAfterIn } from "../http/retry.ts";
import type { PollingOptions } from "./polling.ts";
import type { EventFrame, ReceivedEvents } from "./received-events.ts";

export type StreamEnd =
  | { kind: "completed" }
  /** Every operation of this server must be polled. */
  | { kind: "no such route" }
  /** 425: try again later. */
  | { kind: "not ready"; waitMilliseconds: number | undefined }
  /** 410: the operation has ended, and its log is not available. */
  | { kind: "gone" }
  /** `look` found that the operation has ended while the stream was quiet. */
  | { kind: "ended" }
  | { kind: "broke"; reason: string }
  /** A new connection would return the same again. */
  | { kind: "excessive"; what: string };

interface StreamReader {
  log: ReceivedEvents;
  onFrame(frame: EventFrame): void;
  /** Returns true if the operation has ended. Called while the stream is quiet. */
  look(): Promise<boolean>;
}

/** Statuses of a service without events. */
export const withoutEvents = [400, 406, ...unavailableStatuses];
const tickMilliseconds = 1000;
/** Silence, keepalives included, after which the connection counts as dead. */
const silenceMilliseconds = 45_000;
/** Time without an event after which the operation may have ended unnoticed. */
const quietMilliseconds = 30_000;
/** Time after the main process's exit by which `completion` is due. */
const quietAfterExitMilliseconds = 2000;
/** Time for the server to close the stream after `completion`. Only the connection waits, not the caller. */
const drainMilliseconds = 1000;

/** Reads until the stream ends in any way. Rejects only with the signal's reason. */
export async function readEventStream(
  options: PollingOptions,
  operation: string,
  reader: StreamReader,
): Promise<StreamEnd> {
  const { transport, clock, signal } = options;
  const { log } = reader;
  const events = transport.operations.eventsOf(operation);
  signal.throwIfAborted();
  const stop = childOf(signal);
  const life = watchOver(clock, reader, stop);
  let isDraining = false;
  try {
    const open = (follow: "true" | "1") =>
      transport.open(
        {
          method: "GET",
          path: events.path,
          query: { ...events.query, follow },
          headers: {
            accept: "text/event-stream",
            ...(log.lastId === undefined ? {} : { "last-event-id": log.lastId }),
          },
        },
        stop.signal,
      );
    let response = await open("true");
    // The newest form of the API allows only `1`.
    if (response.status === 400 || response.status === 422) {
      await readBeginning(response.body, stop.signal);
      response = await open("1");
    }
    const refusal = refusalOf(response, clock.now());
    if (refusal !== undefined) {
      // A short response is read to its end, so that the connection can be reused.
      await readBeginning(response.body, stop.signal);
      return refusal;
    }
    log.connect();
    let isBroken = false;
    const frames = createFrameReader((frame) => {
      life.onEvent();
      if (frame.event === "sse_error") isBroken = true;
      else if (!isBroken) reader.onFrame(frame);
    });
    const source = (response.body ?? new Blob().stream()).getReader();
    cancelOnAbort(source, stop.signal);
    for (let part = await source.read(); !part.done; part = await source.read()) {
      life.onBytes();
      transport.recordTraffic();
      frames.feed(part.value);
      if (log.completed) {
        isDraining = true;
        drain(source, clock, stop);
        return { kind: "completed" };
      }
      if (isBroken) return { kind: "broke", reason: "the service sent an error event" };
    }
    stop.signal.throwIfAborted();
    return { kind: "broke", reason: "it ended without a completion event" };
  } catch (error) {
    signal.throwIfAborted();
    if (life.hasEndedQuietly) return { kind: "ended" };
    if (error instanceof ExcessiveEventsError) return { kind: "excessive", what: error.message };
    const isKnown = error instanceof BoughError || error instanceof DeadlineError;
    return {
      kind: "broke",
      reason: isKnown ? error.message : `the connection failed: ${messageOf(error).split("\n", 1)[0]}`,
    };
  } finally {
    if (!isDraining) stop.abort(new DeadlineError("the stream is over"));
    stop.release();
  }
}

/** Returns why a response is not an event stream; `undefined` if it is one. */
function refusalOf(response: Response, now: number): StreamEnd | undefined {
  const { status, headers } = response;
  if (status === 425) {
    return { kind: "not ready", waitMilliseconds: parseRetryAfter(retryAfterIn(headers), now) };
  }
  if (status === 410) return { kind: "gone" };
  if (withoutEvents.includes(status)) return { kind: "no such route" };
  if (status !== 200) return { kind: "broke", reason: `the service responded with ${status}` };
  return isEventStream(headers) ? undefined : { kind: "no such route" };
}

type Stop = ReturnType<typeof childOf>;

/** Ends a stream whose connection is dead, or whose operation has ended. */
function watchOver(clock: Clock, reader: StreamReader, stop: Stop) {
  const life = {
    hasEndedQuietly: false,
    onBytes: () => {
      lastBytes = steadyTime(clock);
    },
    onEvent: () => {
      lastEvent = steadyTime(clock);
    },
  };
  let lastBytes = steadyTime(clock);
  let lastEvent = lastBytes;
  async function watch(): Promise<void> {
    for (;;) {
      await clock.sleep(tickMilliseconds, stop.signal);
      const quietFor = steadyTime(clock) - lastEvent;
      if (steadyTime(clock) - lastBytes >= silenceMilliseconds) {
        stop.abort(new DeadlineError(`no data received for ${silenceMilliseconds / 1000} s`));
      } else if (quietFor >= (reader.log.exited ? quietAfterExitMilliseconds : quietMilliseconds)) {
        // If the look fails, the stream goes on.
        life.hasEndedQuietly = await reader.look().catch(() => false);
        if (life.hasEndedQuietly) stop.abort(new DeadlineError("the operation has ended"));
        lastEvent = steadyTime(clock);
      }
    }
  }
  watch().catch(() => undefined);
  return life;
}

/** Reads until the server ends the stream: only then can the connection be reused. */
async function drain(
  source: Pick<ReadableStreamDefaultReader, "read">,
  clock: Clock,
  stop: Stop,
): Promise<void> {
  const over = new DeadlineError("the stream is over");
  clock.sleep(drainMilliseconds, stop.signal).then(
    () => stop.abort(over),
    () => undefined,
  );
  try {
    while (!(await source.read()).done);
  } catch {
    // Everything of interest was read before.
  } finally {
    stop.abort(over);
  }
}

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

const lineEnd = 0x0a;

interface FrameReader {
  /** Throws an ExcessiveEventsError. */
  feed(bytes: Uint8Array): void;
}

export function createFrameReader(onEvent: (frame: EventFrame) => void): FrameReader {
  let read = 0;
  /** Bytes of whole lines since the latest event: a line of one character takes the memory of many. */
  let unfinished = 0;
  const excessive = () =>
    new ExcessiveEventsError(`an event of more than ${maxEventCharacters / 2 ** 20} MiB`);
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent(frame) {
      unfinished = 0;
      onEvent(frame);
    },
    onError(error) {
      if (error.type === "max-buffer-size-exceeded") throw excessive();
    },
  });
  const decoder = new TextDecoder();
  return {
    feed(bytes) {
      read += bytes.byteLength;
      if (read > maxStreamBytes)
        throw new ExcessiveEventsError(`events of more than ${maxStreamBytes / 2 ** 30} GiB`);
      unfinished += bytes.lastIndexOf(lineEnd) + 1;
      parser.feed(decoder.decode(bytes, { stream: true }));
      if (unfinished > maxEventCharacters) throw excessive();
    },
  };
}
