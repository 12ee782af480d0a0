/** One connection to an operation's event stream. */
import { createParser } from "eventsource-parser";
import { BoughError, messageOf } from "../errors.ts";
import { DeadlineError } from "./deadline.ts";
import type { EventFrame, EventLog } from "./event-log.ts";
import { operationPath, type PollingOptions } from "./polling.ts";
import { parseRetryAfter } from "./retry.ts";

export type StreamEnd =
  | { kind: "completed" }
  /** Every operation of this server is to be polled. */
  | { kind: "no such route" }
  /** 425: come back. */
  | { kind: "not ready"; waitMilliseconds: number | undefined }
  /** 410: the operation has ended, and its log cannot be had. */
  | { kind: "gone" }
  /** `look` found that the operation has ended while the stream said nothing. */
  | { kind: "ended" }
  | { kind: "broke"; reason: string };

export interface StreamReader {
  log: EventLog;
  onFrame(frame: EventFrame): void;
  /** Has the operation ended? Asked while the stream is quiet. */
  look(): Promise<boolean>;
}

const noSuchRoute = new Set([400, 404, 405, 406]);
const tickMilliseconds = 1000;
/** Without a byte for so long, keepalives included, the connection counts as dead. */
const silenceMilliseconds = 45_000;
/** Without an event for so long, the operation may have ended unnoticed. */
const quietMilliseconds = 30_000;
/** After the main process's exit, `completion` is due. */
const quietAfterExitMilliseconds = 2000;

export async function readEventStream(
  options: PollingOptions,
  operation: string,
  reader: StreamReader,
): Promise<StreamEnd> {
  const { transport, clock, signal } = options;
  const stop = new AbortController();
  const forward = () => stop.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", forward, { once: true });
  let lastByte = clock.now();
  let lastEvent = lastByte;
  let endedQuietly = false;

  async function watch(): Promise<void> {
    while (!stop.signal.aborted) {
      await clock.sleep(tickMilliseconds, stop.signal);
      if (clock.now() - lastByte >= silenceMilliseconds) {
        stop.abort(new DeadlineError(`nothing came for ${silenceMilliseconds / 1000} s`));
      } else if (
        clock.now() - lastEvent >=
        (reader.log.exited ? quietAfterExitMilliseconds : quietMilliseconds)
      ) {
        endedQuietly = await reader.look();
        if (endedQuietly) stop.abort(new DeadlineError("the operation has ended"));
        lastEvent = clock.now();
      }
    }
  }
  // A failing look is no reason to leave the stream: whoever looks next will see it.
  watch().catch(() => undefined);

  try {
    const { lastId } = reader.log;
    const response = await transport.open({
      method: "GET",
      path: `${operationPath(operation)}/events`,
      query: { follow: "true" },
      headers: { accept: "text/event-stream", ...(lastId === undefined ? {} : { "last-event-id": lastId }) },
      repeatable: true,
      timeoutMilliseconds: 0,
      signal: stop.signal,
    });
    const refusal = refusalOf(response, clock.now());
    if (refusal !== undefined) {
      await response.body?.cancel();
      return refusal;
    }
    let broken = false;
    const parser = createParser({
      onEvent(frame) {
        lastEvent = clock.now();
        if (frame.event === "sse_error") broken = true;
        else if (!broken) reader.onFrame(frame);
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      lastByte = clock.now();
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (reader.log.completed) return { kind: "completed" };
      if (broken) return { kind: "broke", reason: "the service reported an error of its own" };
    }
    return { kind: "broke", reason: "it ended without a completion" };
  } catch (error) {
    signal.throwIfAborted();
    if (endedQuietly) return { kind: "ended" };
    if (error instanceof BoughError || error instanceof DeadlineError)
      return { kind: "broke", reason: error.message };
    return { kind: "broke", reason: `the connection failed: ${messageOf(error).split("\n", 1)[0]}` };
  } finally {
    stop.abort(new DeadlineError("the stream is over"));
    signal.removeEventListener("abort", forward);
  }
}

/** Why this answer is not a stream to read. */
function refusalOf(response: Response, now: number): StreamEnd | undefined {
  const { status, headers } = response;
  if (status === 425)
    return { kind: "not ready", waitMilliseconds: parseRetryAfter(headers.get("retry-after"), now) };
  if (status === 410) return { kind: "gone" };
  if (noSuchRoute.has(status)) return { kind: "no such route" };
  if (status !== 200) return { kind: "broke", reason: `the service answered ${status}` };
  const type = headers.get("content-type") ?? "";
  return /^text\/event-stream\b/i.test(type) ? undefined : { kind: "no such route" };
}
