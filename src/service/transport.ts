/**
 * One call over HTTP: address, headers, decoding, repeats, errors. The only place of the client that knows the token:
 * it goes into one header of requests to the service's own address and into nothing else.
 */
import { createFetch } from "ofetch";
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { abandonable, withDeadline } from "./abort.ts";
import { parseBaseUrl, urlOf } from "./address.ts";
import { type ConnectionFault, explainFault } from "./connection.ts";
import { NotFoundError, UnknownOutcomeError } from "./errors.ts";
import { type CallName, connectionText, nameOf, statusText } from "./failure-text.ts";
import { followRedirect } from "./redirect.ts";
import { decide, type Failure, isOutcomeUnknown } from "./retry.ts";
import type { Fetch } from "./service.ts";

/** Something that a person who waits would like to know; for the log. */
export interface ServiceNotice {
  level: "debug" | "warn";
  text: string;
}

export interface TransportOptions {
  fetch: Fetch;
  baseUrl: string;
  token?: string;
  project?: string;
  userAgent: string;
  clock: Clock;
  signal: AbortSignal;
  random: () => number;
  onNotice: (notice: ServiceNotice) => void;
}

export type Body = NonNullable<RequestInit["body"]>;

export interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** From `/v1/` on. */
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Makes the body for an attempt; `undefined` where it cannot be made again. */
  body?: () => Body | undefined;
  /** May the service process it twice without harm? */
  repeatable: boolean;
  /** Error statuses that the caller handles: answered, not thrown. */
  handles?: readonly number[];
  /** Default JSON. */
  answer?: "json" | "bytes";
  /** For an attempt until its answer is there whole. 0: however long it takes, as long as bytes pass. Default 30 s. */
  timeoutMilliseconds?: number;
  /** An attempt that is under way when the signal is aborted is given this long to answer. */
  graceMilliseconds?: number;
  /** Instead of the service's own. */
  signal?: AbortSignal;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** The parsed JSON, or a Uint8Array; `undefined` for an empty body and for the statuses that the caller handles. */
  body: unknown;
}

export interface Transport {
  /** Sends, repeats where that is safe, and parses the answer. Rejects with a BoughError. */
  call(call: Call): Promise<Answer>;
  /** One attempt, with the body not yet read; any status. Rejects with a BoughError for a connection fault. */
  open(call: Call): Promise<Response>;
}

/** Leaves time for a second attempt before the retry policy gives up. */
const callTimeoutMilliseconds = 30_000;

export function createTransport(options: TransportOptions): Transport {
  const { clock, onNotice } = options;
  const base = parseBaseUrl(options.baseUrl);
  const token = options.token === undefined ? undefined : checkToken(options.token);
  // ofetch asks for Bun's whole fetch, of which it only ever calls the function itself.
  const $fetch = createFetch({ fetch: options.fetch as typeof globalThis.fetch });
  let answeredBefore = false;

  /** Nothing that leaves this file shows the token, whoever put it into a message. */
  const redact = (text: string) => (token === undefined ? text : text.replaceAll(token, "***"));
  const fail = (text: string, hint?: string) =>
    new BoughError(redact(text), hint === undefined ? {} : { hint });

  function headersOf(call: Call): Headers {
    const headers = new Headers({
      accept: "application/json",
      ...call.headers,
      "user-agent": options.userAgent,
    });
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (options.project !== undefined) headers.set("project", options.project);
    return headers;
  }

  /** One exchange, redirects included. */
  async function send(
    call: Call,
    body: Body | undefined,
    url: string,
    signal: AbortSignal,
    read: "text" | "arrayBuffer" | "stream",
  ): Promise<Received> {
    const headers = headersOf(call);
    if (call.json !== undefined) headers.set("content-type", "application/json");
    const exchange = (target: string) =>
      $fetch.raw<unknown, "json" | "arrayBuffer" | "stream">(target, {
        method: call.method,
        headers,
        ...(body === undefined ? {} : { body, duplex: "half" }),
        redirect: "manual",
        retry: false,
        ignoreResponseError: true,
        signal,
        // The text as it is: what is not JSON must not pass for a string.
        ...(read === "text" ? { parseResponse: (received: string) => received } : { responseType: read }),
        // Bun ends a connection on which nothing passes for five minutes: a quiet event stream's reader knows better.
        ...(read === "stream" ? { timeout: false as unknown as number } : {}),
      });
    return await followRedirect({ method: call.method, url }, exchange, fail);
  }

  async function attempt(
    call: Call,
    body: Body | undefined,
    name: CallName,
    signal: AbortSignal,
  ): Promise<Result> {
    const milliseconds = call.timeoutMilliseconds ?? callTimeoutMilliseconds;
    const limits = { clock, milliseconds, parent: signal, graceMilliseconds: call.graceMilliseconds };
    const work = (limited: AbortSignal) =>
      send(call, body, name.url, limited, call.answer === "bytes" ? "arrayBuffer" : "text");
    let response: Received;
    try {
      response = await (milliseconds === 0 ? abandonable(signal, work(signal)) : withDeadline(limits, work));
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(error);
      const { received, permanent } = fault;
      return { failure: { kind: "connection", received, permanent }, error: faultError(name, fault) };
    }
    const { status, headers } = response;
    const data = response._data;
    answeredBefore ||= status < 500;
    if (call.handles?.includes(status)) return { answer: { status, headers, body: undefined } };
    if (status >= 300 || status < 200) {
      const text = textOf(data);
      const failure: Failure = { kind: "status", status, retryAfter: headers.get("retry-after") };
      return { failure, error: statusError(name, status, text) };
    }
    if (call.answer === "bytes") {
      return { answer: { status, headers, body: new Uint8Array(data instanceof ArrayBuffer ? data : []) } };
    }
    const text = textOf(data);
    const parsed = parseJson(text);
    // Where the Location says what was made, the answer can do without a body.
    if (parsed === undefined && headers.get("location") === null) {
      const shown = text.slice(0, 80).replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
      return {
        failure: { kind: "malformed" },
        error: fail(`${nameOf(name)} answered ${status} with something that is not JSON: ${shown}`),
      };
    }
    return { answer: { status, headers, body: parsed?.value } };
  }

  function faultError(name: CallName, fault: ConnectionFault): BoughError {
    return fail(connectionText(name, fault.reason), fault.hint);
  }

  function statusError(name: CallName, status: number, text: string): BoughError {
    const message = redact(statusText(name, status, text));
    if (status === 404) return new NotFoundError(message);
    if (status === 401 || status === 403) {
      const hint =
        token === undefined
          ? "No token was sent: give one with --token, CONTREE_TOKEN or a profile."
          : "The token that was sent is not accepted for this: give another with --token, CONTREE_TOKEN or a profile, or check the project.";
      return fail(message, hint);
    }
    return fail(message);
  }

  return {
    async call(call) {
      const name = { method: call.method, url: urlOf(base, call.path, call.query) };
      const signal = call.signal ?? options.signal;
      const started = clock.now();
      const makeBody = () => (call.json === undefined ? call.body?.() : JSON.stringify(call.json));
      let body = makeBody();
      for (let number = 1; ; number++) {
        signal.throwIfAborted();
        const result = await attempt(call, body, name, signal);
        if ("answer" in result) return result.answer;
        const { failure, error } = result;
        const elapsedMilliseconds = clock.now() - started;
        const facts = { number, repeatable: call.repeatable, answeredBefore, failure, elapsedMilliseconds };
        const decision = decide(facts, clock.now(), options.random());
        if (decision.action === "give up") throw finalError(error, call, failure, number);
        body = makeBody();
        if (body === undefined && call.body !== undefined) throw finalError(error, call, failure, number);
        onNotice({
          level: decision.milliseconds >= 1000 ? "warn" : "debug",
          text: `${error.message}; trying again in ${seconds(decision.milliseconds)}`,
        });
        await clock.sleep(decision.milliseconds, signal);
      }
    },

    async open(call) {
      const name = { method: call.method, url: urlOf(base, call.path, call.query) };
      const signal = call.signal ?? options.signal;
      try {
        const response = await abandonable(signal, send(call, undefined, name.url, signal, "stream"));
        answeredBefore ||= response.status < 500;
        return response;
      } catch (error) {
        signal.throwIfAborted();
        throw faultError(name, faultOf(error));
      }
    },
  };
}

/** ofetch's own field for what it read. */
type Received = Response & { _data?: unknown };

type Result = { answer: Answer } | { failure: Failure; error: BoughError };

function finalError(error: BoughError, call: Call, failure: Failure, attempts: number): BoughError {
  const tried = attempts > 1 ? ` (tried ${attempts} times)` : "";
  if (!call.repeatable && isOutcomeUnknown(failure)) {
    return new UnknownOutcomeError(
      `${error.message}${tried}`,
      error.hint === undefined ? {} : { hint: error.hint },
    );
  }
  if (tried === "" || error instanceof NotFoundError) return error;
  return new BoughError(`${error.message}${tried}`, error.hint === undefined ? {} : { hint: error.hint });
}

/** A BoughError is a refusal of our own (a redirect), not a fault of the connection. */
function faultOf(error: unknown): ConnectionFault {
  if (error instanceof BoughError) throw error;
  return explainFault(error);
}

function parseJson(text: string): { value: unknown } | undefined {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** A header takes visible ASCII only; the error must not show what it is about. */
function checkToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new BoughError(
    "the token is empty or has a character in it that no token has (a space, a line end?)",
    {
      kind: "usage",
      hint: "Check --token, CONTREE_TOKEN or the profile's token.",
    },
  );
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

function textOf(data: unknown): string {
  return typeof data === "string" ? data : data instanceof ArrayBuffer ? new TextDecoder().decode(data) : "";
}
