/** One exchange with a host: a request and the head of its response, with a time limit and without retries. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { readBeginning } from "../service/http/bounded-body.ts";
import { explainFault, isCertificateFault } from "../service/http/connection.ts";
import { childOf, DeadlineError, startIdleTimer } from "../service/http/deadline.ts";
import { type CallName, callName } from "../service/http/errors.ts";
import { parseRetryAfter, retryAfterIn } from "../service/http/retry.ts";
import type { Fetch } from "../service/service.ts";
import { tap } from "../streams.ts";
import type { Scopes } from "./authorization.ts";
import type { TlsOptions, TlsTrust } from "./certificates.ts";
import type { RateLimits, RequestOutcome } from "./rate-limits.ts";
import { codesIn, RegistryError, responseText } from "./registry-error.ts";

export interface RegistryRequest {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Below `/v2/NAME/`, or an address of the registry's own from its `Location`. */
  path: string | URL;
  scopes: Scopes;
  headers?: Record<string, string>;
  /** Returns the content. It is called for each attempt. */
  body?: () => Uint8Array | AsyncIterable<Uint8Array>;
  /** Statuses, besides those of success, that the caller handles. */
  handles?: readonly number[];
}

export interface SendOptions {
  fetch: Fetch;
  clock: Clock;
  trust: TlsTrust;
  /** Delays requests while the host accepts none; `undefined` to send each at once. */
  limits?: RateLimits | undefined;
}

/** A response whose body is still to be read. */
export interface Exchanged {
  name: CallName;
  url: URL;
  response: Response;
  signal: AbortSignal;
  stop: ReturnType<typeof childOf>;
  stopTimer(): void;
  /** Gives up the connection, unless the body has been read. */
  end(): void;
}

export interface SentRequest extends RegistryRequest {
  url: URL;
  authorization: string | undefined;
}

const responseTimeoutMilliseconds = 60_000;
/** The time limit after a body was sent: a registry writes a large blob to its own storage before it responds. */
const uploadTimeoutMilliseconds = 300_000;

/** Rejects with the signal's reason, or with a RegistryError that names the call and the reason. */
export async function sendOnce(
  options: SendOptions,
  request: SentRequest,
  signal: AbortSignal,
): Promise<Exchanged> {
  // The body of a request may be a download from the same host, so it must not wait for that.
  const leave = await options.limits?.enter(request.url.host, request.body === undefined, signal);
  let outcome: RequestOutcome = "failed";
  try {
    const exchanged = await sendNow(options, request, signal);
    const { status, headers } = exchanged.response;
    const asked = parseRetryAfter(retryAfterIn(headers), options.clock.now());
    outcome = isRateLimited(status, asked) ? { refusedFor: asked ?? 0 } : "answered";
    return exchanged;
  } finally {
    leave?.(outcome);
  }
}

async function sendNow(options: SendOptions, request: SentRequest, signal: AbortSignal): Promise<Exchanged> {
  const { url } = request;
  const tls = () => (url.protocol === "https:" ? options.trust.for(url.host) : undefined);
  const used = tls();
  try {
    return await attempt(options, request, used, signal);
  } catch (error) {
    if (!isCertificateFault(error) || !options.trust.addMachineAuthorities(url.host, used)) throw error;
    return await attempt(options, request, tls(), signal);
  }
}

async function attempt(
  { fetch, clock }: SendOptions,
  { method, url, headers, body, authorization }: SentRequest,
  tls: TlsOptions | undefined,
  signal: AbortSignal,
): Promise<Exchanged> {
  signal.throwIfAborted();
  const name = { method, url: url.href, shown: shownAddress(url) };
  const stop = childOf(signal);
  const milliseconds = body === undefined ? responseTimeoutMilliseconds : uploadTimeoutMilliseconds;
  const timer = startIdleTimer(clock, milliseconds, () =>
    stop.abort(new DeadlineError(`no answer within ${milliseconds / 1000} s`)),
  );
  const content = body?.();
  const end = () => {
    timer.stop();
    stop.release();
  };
  try {
    const init = {
      method,
      headers: { "accept-encoding": "identity", ...headers, ...(authorization && { authorization }) },
      ...(content === undefined
        ? {}
        : { body: sent(content, timer.touch) as NonNullable<RequestInit["body"]> }),
      redirect: "manual" as const,
      signal: stop.signal,
      decompress: false,
      timeout: 0,
      ...(tls === undefined ? {} : { tls }),
    };
    const response = await fetch(url.href, init);
    timer.touch();
    const giveUp = () => {
      end();
      if (response.body?.locked === false) response.body.cancel().catch(() => undefined);
    };
    return { name, url, response, signal: stop.signal, stop, stopTimer: () => timer.stop(), end: giveUp };
  } catch (error) {
    end();
    throw signal.aborted ? signal.reason : transportError(name, error);
  }
}

function sent(
  content: Uint8Array | AsyncIterable<Uint8Array>,
  onChunk: () => void,
): Uint8Array | AsyncGenerator<Uint8Array> {
  return content instanceof Uint8Array ? content : tap(content, onChunk);
}

/** Returns an address for messages, without its query, which can contain a signature or the state of an upload. */
export function shownAddress({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

export function protocolError({ name }: Pick<Exchanged, "name">, what: string): RegistryError {
  return new RegistryError(`${callName(name)} ${what}`, { isTransient: false });
}

/** Returns the error of an unsuccessful response, with what its body says. */
export async function responseError(
  exchanged: Exchanged,
  clock: Clock,
  signal: AbortSignal,
): Promise<RegistryError> {
  const { response, name } = exchanged;
  const { status, headers } = response;
  let beginning = new Uint8Array();
  try {
    beginning = new Uint8Array(await readBeginning(response.body, exchanged.signal));
  } catch {
    signal.throwIfAborted();
  } finally {
    exchanged.end();
  }
  const body = new TextDecoder().decode(beginning);
  return new RegistryError(responseText(name, status, body), {
    status,
    isTransient: isTransientStatus(status) || codesIn(body).some((code) => transientCodes.has(code)),
    retryAfterMilliseconds: parseRetryAfter(retryAfterIn(headers), clock.now()),
  });
}

export function transportError(name: CallName, error: unknown): BoughError {
  if (error instanceof BoughError) return error;
  const { kind: fault, reason, hint, permanent } = explainFault(error);
  return new RegistryError(`${callName(name)}: ${reason}`, {
    isTransient: !permanent,
    fault,
    hint,
    cause: error,
  });
}

/** A transfer that has failed. */
interface FailedTransfer extends Pick<RegistryError, "status" | "isTransient"> {
  /** How long the registry asks to wait. */
  retryAfterMilliseconds?: number | undefined;
  /** 1 for the first attempt. */
  attempt: number;
  /** The number of further attempts that the user allows: `--retry`. */
  retries: number;
  /** A random number in [0, 1). */
  random: number;
}

const firstWaitMilliseconds = 250;
const maxWaitMilliseconds = 10_000;
/** If a registry asks for more time, the request fails. */
const maxRetryAfterMilliseconds = 300_000;
/** The minimum of retries at a limit of requests: it certainly ends, and several uploads can reach it together. */
const minRateLimitRetries = 6;

/** Returns the time before the next attempt; `undefined` if there is none. */
export function waitBeforeRetry(failure: FailedTransfer): number | undefined {
  const { status, isTransient, retryAfterMilliseconds: asked = 0, attempt, retries, random } = failure;
  const isLimited = isRateLimited(status, asked);
  const allowed = isLimited && retries > 0 ? Math.max(retries, minRateLimitRetries) : retries;
  if (!isTransient || attempt > allowed || asked > maxRetryAfterMilliseconds) return undefined;
  const full = Math.min(maxWaitMilliseconds, firstWaitMilliseconds * 2 ** (attempt - 1));
  return Math.max(asked, Math.round(full * (1 - random / 2)));
}

/** Performs work that consists of requests, and repeats it after transient failures, at most `retries` times. */
export async function retryTransient<T>(
  work: () => Promise<T>,
  { clock, retries }: { clock: Clock; retries: number },
  signal: AbortSignal,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RegistryError)) throw error;
      const { status, isTransient, retryAfterMilliseconds } = error;
      const failure = { status, isTransient, retryAfterMilliseconds, attempt, random: Math.random() };
      const wait = waitBeforeRetry({ ...failure, retries });
      if (wait === undefined) throw error;
      await clock.sleep(wait, signal);
    }
  }
}

/** True if a host accepts no more requests for a while. */
function isRateLimited(status: number | undefined, asked = 0): boolean {
  return status === 429 || (status === 503 && asked > 0);
}

/** A registry that keeps blobs in files can miss one for a moment while another client uploads the same. */
const transientCodes: ReadonlySet<string> = new Set(["MANIFEST_BLOB_UNKNOWN"]);

/** True for a status after which another attempt may succeed. */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && ![501, 505, 507].includes(status));
}

/** Returns the number of further attempts, from `BOUGH_RETRY`. */
export function retriesIn({ BOUGH_RETRY }: Readonly<Record<string, string | undefined>>): number {
  return /^\d{1,3}$/.test(BOUGH_RETRY ?? "") ? Number(BOUGH_RETRY) : 2;
}
