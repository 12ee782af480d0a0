/** One attempt at a call, with a deadline and without retries. It ends with a response or a failure. */
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { watchedBody } from "./body-stream.ts";
import { maxFileBytes, maxJsonBytes, readBeginning, readWhole } from "./bounded-body.ts";
import { explainFault } from "./connection.ts";
import { childOf, DeadlineError, type RequestDeadline, rejectOnAbort, withDeadline } from "./deadline.ts";
import { callName, MovedError, RedirectError } from "./errors.ts";
import type { Exchange, RequestBody, RequestParts } from "./exchange.ts";
import { type AttemptResult, type Received, type Requirement, readResponse } from "./response.ts";
import type { AttemptFailure } from "./retry.ts";

/** A line for the log, for a user who waits. */
export interface ServiceNotice {
  level: "debug" | "info" | "warn";
  text: string;
}

export interface AttemptParts extends RequestParts {
  /** The body, which is sent as JSON. */
  json?: unknown;
  /** Error statuses that the caller handles: returned, not thrown. */
  handles?: readonly number[];
  /** Error statuses whose body may be what the call requires: then it is read like any other. */
  accepts?: readonly number[];
  /** The form of the body; by default JSON. A `stream` is read by the caller, and fails after a time without bytes. */
  expects?: "json" | "bytes" | "stream";
  /** Requirement for a JSON body. */
  requires?: Requirement;
  /** Time for the whole response, or for its head if a stream is expected. 0: no limit, as long as bytes pass. Default: 30 s. */
  timeoutMilliseconds?: number;
  /** A deadline shared by successive calls, instead of a timeout. */
  deadline?: RequestDeadline;
  /** Time for a running attempt to get its response after the signal is aborted. */
  graceMilliseconds?: number;
}

interface AttemptOptions {
  exchange: Exchange;
  clock: Clock;
  onNotice: (notice: ServiceNotice) => void;
}

/** The default time limit, which leaves time for a second attempt before the retry policy gives up. */
const defaultTimeoutMilliseconds = 30_000;
/** Time after which the user is told that the response is still awaited. */
const slowMilliseconds = 15_000;

/** Makes one attempt. Rejects with the signal's reason. */
export async function attempt(
  options: AttemptOptions,
  parts: AttemptParts,
  body: RequestBody | undefined,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const { exchange } = options;
  const { handles = [], accepts, expects = "json", requires } = parts;
  const { hasToken, redact } = exchange;
  const stopWarning = warnIfSlow(options, parts, body);
  try {
    const received = await (expects === "stream"
      ? openStream(options, parts, signal)
      : receive(options, parts, body, signal, expects));
    const call = exchange.nameOf(parts);
    return readResponse({ call, handles, accepts, expects, requires, hasToken, redact }, received);
  } catch (error) {
    // A deadline that a caller has set for its call counts as a connection fault, like the call's own.
    if (signal.aborted && !(signal.reason instanceof DeadlineError)) throw signal.reason;
    return faultOf(exchange, parts, error);
  } finally {
    stopWarning();
  }
}

/** Returns the failure of a call without a response, or with a redirect that is not followed. */
export function faultOf(
  exchange: Exchange,
  parts: RequestParts,
  thrown: unknown,
): { failure: AttemptFailure; error: BoughError } {
  if (thrown instanceof MovedError)
    return { failure: { kind: "moved", url: thrown.url } as const, error: thrown };
  // bough itself refuses to follow the redirect: the connection is fine.
  if (thrown instanceof RedirectError)
    return { failure: { kind: "status", status: 302, retryAfter: null } as const, error: thrown };
  if (thrown instanceof BoughError) throw thrown;
  const { reason, hint, received, permanent } = explainFault(thrown);
  const text = exchange.redact(`${callName(exchange.nameOf(parts))}: ${reason}`);
  const failure: AttemptFailure = { kind: "connection", received, permanent };
  return { failure, error: new BoughError(text, { hint }) };
}

async function receive(
  { exchange, clock }: AttemptOptions,
  parts: AttemptParts,
  body: RequestBody | undefined,
  signal: AbortSignal,
  expects: "json" | "bytes",
): Promise<Received> {
  const { json, deadline, graceMilliseconds } = parts;
  const { timeoutMilliseconds: milliseconds = defaultTimeoutMilliseconds } = parts;
  const request = json === undefined ? parts : { ...parts, headers: { "content-type": "application/json" } };
  const send = async (own: AbortSignal): Promise<Received> => {
    const response = await exchange.send(request, body, own);
    const { ok, status, headers } = response;
    if (!ok) return { status, headers, data: await readBeginning(response.body, own) };
    const maxBytes = expects === "json" ? maxJsonBytes : maxFileBytes;
    const data = await readWhole(response.body, maxBytes, own);
    return { status, headers, data: data ?? { moreThan: maxBytes } };
  };
  if (deadline !== undefined) return await deadline.run(send);
  return await (milliseconds === 0
    ? rejectOnAbort(signal, send(signal))
    : withDeadline({ clock, milliseconds, parent: signal, graceMilliseconds }, send));
}

/** Opens a response's body. Of an error's body only the beginning is read; any other is watched while the caller reads it. */
async function openStream(
  { exchange, clock }: AttemptOptions,
  parts: AttemptParts,
  signal: AbortSignal,
): Promise<Received> {
  const { timeoutMilliseconds: milliseconds = defaultTimeoutMilliseconds } = parts;
  const stop = childOf(signal);
  const explain = (error: unknown) =>
    signal.aborted ? signal.reason : faultOf(exchange, parts, error).error;
  try {
    return await withDeadline({ clock, milliseconds, parent: signal }, async () => {
      const response = await exchange.send(parts, undefined, stop.signal, { isWatched: true });
      const { ok, status, headers } = response;
      if (ok) return { status, headers, data: watchedBody(response.body, { clock, stop, explain }) };
      const data = await readBeginning(response.body, stop.signal);
      stop.release();
      return { status, headers, data };
    });
  } catch (error) {
    stop.abort(error);
    stop.release();
    throw error;
  }
}

/** Warns about a slow response, except to an upload, which reports its own progress. Returns a function to call when it has arrived. */
function warnIfSlow(
  { exchange, clock, onNotice }: AttemptOptions,
  parts: AttemptParts,
  body: RequestBody | undefined,
): () => void {
  if (body !== undefined && parts.json === undefined) return () => undefined;
  const over = new AbortController();
  const text = `${callName(exchange.nameOf(parts))}: no answer yet, still waiting`;
  clock.sleep(slowMilliseconds, over.signal).then(
    () => onNotice({ level: "warn", text: exchange.redact(text) }),
    () => undefined,
  );
  return () => over.abort();
}
