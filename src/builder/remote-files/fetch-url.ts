/** Requests to the servers named by `ADD <url>` or a build's context: redirects, deadlines, and which failures are temporary. */

import { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { watchedBody } from "../../service/http/body-stream.ts";
import { explainFault } from "../../service/http/connection.ts";
import { childOf, withDeadline } from "../../service/http/deadline.ts";
import { SpentBodyError } from "../../service/http/errors.ts";
import { type AttemptFailure, decide, retryAfterIn } from "../../service/http/retry.ts";
import { redactUrl, splitCredentials } from "../addresses/source-url.ts";
import type { RemoteAccess } from "./remote-access.ts";
import { authorizationFor, headerSecret, hostNameOf, tokenSecret } from "./url-authorization.ts";

interface UrlRequest {
  method: "GET" | "HEAD";
  headers?: Record<string, string>;
}

/** Thrown for a failure of the server, or of the connection to it, that may be temporary. */
class SourceError extends BoughError {
  override readonly name = "SourceError";
  readonly failure: AttemptFailure;

  constructor(message: string, failure: AttemptFailure, hint: Message) {
    super(message, { hint });
    this.failure = failure;
  }
}

const maxRedirects = 10;
/** The time limit for the head of a response. */
const answerMilliseconds = 60_000;

/**
 * Follows redirects itself: one from https to http is refused, and credentials are sent only to the origin that they were given
 * for. The bytes are returned as sent, compressed or not. Rejects with a SourceError if there is no response.
 */
export async function fetchUrl(url: string, init: UrlRequest, access: RemoteAccess): Promise<Response> {
  const { target, authorization: ofUrl } = splitCredentials(url);
  const authorization = authorizationFor(target, access.secrets) ?? ofUrl;
  let address = target;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const isOwn = authorization !== undefined && address.origin === target.origin;
    const response = await reach(address, access, {
      method: init.method,
      headers: {
        "Accept-Encoding": "identity",
        ...init.headers,
        ...(isOwn ? { Authorization: authorization } : {}),
      },
    });
    const location = response.headers.get("location");
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response;
    await response.body?.cancel();
    address = redirectTarget(url, address, location, access);
  }
  throw new BoughError(
    `${access.subject} ${redactUrl(url, access.buildArgs)}: more than ${maxRedirects} redirects`,
    {
      hint: "Give the final address.",
    },
  );
}

/** Returns the content that a server sends, decoded. Rejects with a SourceError if it refuses; `hint` says what to do about that. */
export async function fetchContent(
  url: string,
  access: RemoteAccess,
  hint?: Message,
): Promise<{ body: ReadableStream<Uint8Array>; headers: Headers }> {
  const response = await fetchUrl(url, { method: "GET" }, access);
  const { ok, status, statusText, headers, body } = await withoutGzip(response);
  if (ok && body !== null) return { body, headers };
  await body?.cancel();
  const shown = redactUrl(url, access.buildArgs);
  const message = `${access.subject} ${shown}: the server responded with ${status} ${statusText}`.trimEnd();
  const failure: AttemptFailure = { kind: "status", status, retryAfter: retryAfterIn(headers) };
  throw new SourceError(message, failure, hint ?? adviceOn(status, url));
}

function adviceOn(status: number, url: string): Message {
  if (status !== 401 && status !== 403) return "Check the address, and that this machine has access to it.";
  const host = hostNameOf(splitCredentials(url).target);
  const secret = { option: "secret", value: `id=${tokenSecret}${host},env=NAME` };
  return wording`Give it a login: ${secret}, or ${headerSecret}${host} for a whole Authorization header.`;
}

/**
 * Decodes `Content-Encoding: gzip`, which servers of stored objects use although the request accepts no coding. Like Docker, it
 * decodes nothing else: with `x-gzip`, some servers only describe an archive.
 */
async function withoutGzip(response: Response): Promise<Response> {
  if (response.headers.get("content-encoding")?.toLowerCase() !== "gzip") return response;
  const { decompressed } = await import("../../service/http/decompression.ts");
  return decompressed(response);
}

/** Returns the content as it arrives. It ends with the signal, and fails if no data arrives. */
export function watched(
  body: ReadableStream<Uint8Array>,
  { clock, signal }: RemoteAccess,
): ReadableStream<Uint8Array> {
  return watchedBody(body, { clock, stop: childOf(signal), explain: (error) => error });
}

/** Repeats `work` until it succeeds or fails for good. Warns of each further attempt. */
export async function withRetries<Result>(
  { clock, signal, warn }: RemoteAccess,
  isKnownToAnswer: boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  const started = clock.now();
  for (let number = 1; ; number++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error);
      if (failure === undefined || !(error instanceof BoughError)) throw error;
      const answeredBefore = isKnownToAnswer || (failure.kind === "connection" ? failure.received : true);
      const elapsedMilliseconds = clock.now() - started;
      // No jitter: a single build does not overload a server.
      const decision = decide(
        { number, repeatable: true, answeredBefore, failure, elapsedMilliseconds },
        clock.now(),
        0,
      );
      if (decision.action === "give up") throw number === 1 ? error : retriesExhausted(error, number);
      const seconds = (decision.milliseconds / 1000).toFixed(1);
      warn(`${error.message}; trying again in ${seconds} s`);
      await clock.sleep(decision.milliseconds, signal);
    }
  }
}

function retriesExhausted({ message, hint }: BoughError, attempts: number): BoughError {
  return new BoughError(`${message} (tried ${attempts} times)`, { hint });
}

/** Returns a readable error for a failed transfer. Throws for an interruption; returns an error that is readable already. */
export function sourceFault(url: string, error: unknown, access: RemoteAccess): BoughError {
  const { subject, buildArgs, signal } = access;
  signal.throwIfAborted();
  if (error instanceof BoughError) return error;
  const { reason, received, permanent } = explainFault(error);
  return new SourceError(
    `${subject} ${redactUrl(url, buildArgs)}: ${reason}`,
    { kind: "connection", received, permanent },
    received ? "Run the build again." : "Check the address, and that this machine can reach it.",
  );
}

function failureOf(error: unknown): AttemptFailure | undefined {
  return error instanceof SourceError || error instanceof SpentBodyError ? error.failure : undefined;
}

async function reach(address: URL, access: RemoteAccess, init: BunFetchRequestInit): Promise<Response> {
  const { clock, signal } = access;
  const request: BunFetchRequestInit = { ...init, redirect: "manual", decompress: false };
  try {
    return await withDeadline({ clock, milliseconds: answerMilliseconds, parent: signal }, (own) =>
      access.fetchUrl(address.href, { ...request, signal: own }),
    );
  } catch (error) {
    throw sourceFault(address.href, error, access);
  }
}

function redirectTarget(url: string, from: URL, location: string, { subject, buildArgs }: RemoteAccess): URL {
  const hint = "Give the final address if you trust it.";
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (next === undefined || !/^https?:$/.test(next.protocol)) {
    const message = `${subject} ${redactUrl(url, buildArgs)}: the server redirects to an address that is not http or https; refused`;
    throw new BoughError(message, { hint });
  }
  // The Dockerfile gives the credentials. Those in a server's redirect are not sent.
  next.username = "";
  next.password = "";
  if (from.protocol === "https:" && next.protocol === "http:") {
    throw new BoughError(
      `${subject} ${redactUrl(url, buildArgs)}: the server redirects to ${redactUrl(next.href, buildArgs)}, which is less secure; refused`,
      { hint },
    );
  }
  return next;
}
