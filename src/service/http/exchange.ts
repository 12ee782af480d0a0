/**
 * Sends one request over the given fetch. Only this file knows the token: it goes into one header of requests to the service's
 * own origin, and `redact` removes it from every text that leaves the client.
 *
 * Bun makes connections: it caches a name's addresses for 30 seconds, tries up to four of them at once, and resumes TLS sessions within
 * a process, which saves computing and, since TLS 1.3, no round trip.
 */
import { createFetch } from "ofetch";
import { type Clock, steadyTime } from "../../clock.ts";
import { usageError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { Secret } from "../../secret.ts";
import type { Fetch } from "../service.ts";
import { formatAddress, parseBaseUrl, type Query, urlOf, withoutCredentials } from "./address.ts";
import { DeadlineError } from "./deadline.ts";
import { type CallName, callName, MovedError, RedirectError } from "./errors.ts";
import { createConnectionWatch } from "./one-connection.ts";
import { createProtocols, type KnownProtocol } from "./protocol.ts";

export interface ExchangeOptions {
  clock: Clock;
  fetch: Fetch;
  baseUrl: string;
  token?: Secret;
  project?: string;
  userAgent: string;
  knownProtocol?: KnownProtocol | undefined;
  onNotice: (notice: { level: "info"; text: string }) => void;
}

export type RequestBody = NonNullable<RequestInit["body"]>;

export interface RequestParts {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** The path from `/v1/` on. */
  path: string;
  query?: Query;
  headers?: Record<string, string>;
  /**
   * Never uses a connection that has been idle: the server may close it at that moment, and it would be unknown whether the
   * request was received.
   */
  overNewConnection?: boolean;
  /** The address to which the service has redirected the previous attempt. */
  movedTo?: string | undefined;
}

export interface Exchange {
  hasToken: boolean;
  redact(text: string): string;
  nameOf(parts: RequestParts): CallName;
  /** Has to be called when bytes of a watched stream arrive. */
  recordTraffic(): void;
  /**
   * Sends a request. The caller reads the response's body and limits its size; with `isWatched` it also notices a stalled body.
   * Rejects with what fetch threw, with a RedirectError for a redirect that is not followed, or with a MovedError.
   */
  send(
    parts: RequestParts,
    body: RequestBody | undefined,
    signal: AbortSignal,
    options?: { isWatched: boolean },
  ): Promise<Response>;
}

const minSecretCharacters = 8;
const acceptedEncodings = "gzip, deflate, br, zstd";
/**
 * Maximum idle time of a connection that is used again, unless the server says when it closes one: usually after five seconds or
 * more. A new connection costs a round trip, and two over TLS.
 */
const defaultIdleMilliseconds = 4000;
/** The server's time begins half a round trip before ours, and ends when the request has arrived. */
const idleMarginMilliseconds = 1000;
const maxIdleMilliseconds = 60_000;

export function createExchange(options: ExchangeOptions): Exchange {
  const { clock } = options;
  const base = parseBaseUrl(options.baseUrl);
  const address = formatAddress(base);
  const token = options.token === undefined ? undefined : checkToken(options.token);
  // ofetch makes requests and response streams from options. Its retries, timeouts and parsing are off: transport.ts and
  // response.ts decide on repeats, time limits and sizes.
  // Its type asks for Bun's whole fetch, but it only calls the function.
  const $fetch = createFetch({ fetch: options.fetch as typeof globalThis.fetch });
  let lastResponse = 0;
  let idleMilliseconds = defaultIdleMilliseconds;
  const isIdle = () => steadyTime(clock) - lastResponse > idleMilliseconds;
  /** The time of the latest bytes of a watched stream, which prove that a shared connection is alive. */
  let lastTraffic = 0;
  const isQuiet = () => steadyTime(clock) - Math.max(lastResponse, lastTraffic) > idleMilliseconds;
  // A token of a few characters is part of other words, and protects nothing.
  const isSecret = token !== undefined && token.length >= minSecretCharacters;
  const redact = (text: string) => (isSecret ? text.replaceAll(token, "***") : text);

  /** Header names are in lower case here and in `RequestParts`. */
  const usualHeaders = { accept: "application/json", "accept-encoding": acceptedEncodings };
  const ownHeaders = {
    "user-agent": options.userAgent,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(options.project === undefined ? {} : { project: options.project }),
  };

  function nameOf({ method, path, query }: RequestParts): CallName {
    const url = urlOf(address, path, query);
    return {
      method,
      url,
      get shown() {
        return withoutCredentials(url);
      },
    };
  }

  /** Sends a request that changes nothing, and ignores the response. */
  async function probe(init: BunFetchRequestInit & { headers?: Record<string, string> }): Promise<void> {
    const headers = { ...usualHeaders, ...ownHeaders, ...init.headers };
    const response = await options.fetch(urlOf(address, "/v1/images", { limit: "1" }), { ...init, headers });
    await response.body?.cancel();
  }

  const protocols = createProtocols({
    clock,
    isSecure: base.protocol === "https:",
    known: options.knownProtocol,
    probe: () => probe({ protocol: "http2" }),
  });
  const connections = createConnectionWatch({
    clock,
    closeIdle: (signal) => probe({ headers: { connection: "close" }, signal }),
    onOne: () =>
      options.onNotice({
        level: "info",
        text: "the service serves one connection at a time: each ends with its response from now on",
      }),
  });
  const { watch } = connections;

  return {
    hasToken: token !== undefined,
    redact,
    nameOf,
    recordTraffic() {
      lastTraffic = steadyTime(clock);
    },
    async send(parts, body, signal, { isWatched } = { isWatched: false }) {
      const isSingle = isLong(body) || (parts.overNewConnection === true && isQuiet());
      const protocol = isSingle ? "http1.1" : protocols.choose();
      const isShared = protocol === "http2";
      const isNew = parts.overNewConnection === true && !isShared && isIdle();
      const ending = connections.isOne() ? { connection: "close" } : {};
      const request = {
        method: parts.method,
        headers: { ...usualHeaders, ...parts.headers, ...ownHeaders, ...ending },
        ...(body === undefined ? {} : { body, duplex: "half" as const }),
        ...(isNew ? { keepalive: false } : {}),
        redirect: "manual" as const,
        retry: false as const,
        ignoreResponseError: true,
        signal,
        responseType: "stream" as const,
        decompress: false,
        // Bun ends a connection without traffic after five minutes, unless this is 0. A watched stream has its own rule.
        ...(isWatched ? { timeout: 0 } : {}),
      };
      const shared = { ...request, protocol };
      const raw = (url: string) => $fetch.raw<unknown, "stream">(url, request);
      const overOne = (url: string) => watch(isNew, signal, () => raw(url));
      const overShared = async (url: string) => {
        try {
          const response = await $fetch.raw<unknown, "stream">(url, shared);
          protocols.recordResponse();
          return response;
        } catch (error) {
          const isGivenUp = signal.aborted && !(signal.reason instanceof DeadlineError);
          if (!isGivenUp && protocols.recordFailure(error)) return await overOne(url);
          throw error;
        }
      };
      const call = nameOf(parts);
      const response = await followRedirect(
        call,
        { url: parts.movedTo ?? call.url, canSendAgain: canSendAgain(body) },
        isShared ? overShared : overOne,
        (text, hint) => new RedirectError(redact(text), { hint }),
      );
      lastResponse = steadyTime(clock);
      idleMilliseconds = readIdleMilliseconds(response.headers.get("keep-alive")) ?? idleMilliseconds;
      if (!response.headers.has("content-encoding")) return response;
      // The import is dynamic, since loading it takes longer than a request.
      return (await import("./decompression.ts")).decompressed(response);
    },
  };
}

/** Reads how long a connection may be idle: `Keep-Alive: timeout=5, max=100`, in seconds. */
function readIdleMilliseconds(header: string | null): number | undefined {
  const seconds = /\btimeout\s*=\s*(\d+)/i.exec(header ?? "")?.[1];
  if (seconds === undefined) return undefined;
  return Math.min(Number(seconds) * 1000 - idleMarginMilliseconds, maxIdleMilliseconds);
}

/** Bodies up to this length go over a shared connection. */
const maxSharedBytes = 64 * 1024;

/**
 * True if a body may be longer than a server's window for a stream of HTTP/2, after which each further part waits for a round
 * trip: 10 MB to a server 100 ms away took five times as long as over HTTP/1.1.
 */
function isLong(body: RequestBody | undefined): boolean {
  if (body === undefined) return false;
  return !(typeof body === "string" || body instanceof Uint8Array) || body.length > maxSharedBytes;
}

/** Throws unless the token is visible ASCII, as headers require. The error must not contain the token. */
function checkToken(secret: Secret): string {
  const token = secret.text();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw usageError(
    "invalid token: it is empty or contains a character that is not allowed (a space or a line break?)",
    wording`Check ${{ option: "token" }}, CONTREE_TOKEN or the profile's token.`,
  );
}

/** Redirects that keep the method and the body. */
const keepingStatuses = new Set([307, 308]);
const redirectStatuses = new Set([301, 302, 303, ...keepingStatuses]);
const maxRedirects = 5;

const newAddressHint = wording`Give the address that it redirects to with ${{ option: "url" }} or in the profile.`;

/** Returns true if a body can be sent twice, unlike a stream, whose beginning is gone. */
function canSendAgain(body: RequestBody | undefined): boolean {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array || body instanceof Blob;
}

/**
 * Follows redirects within the service's own origin: those of a GET, and those that keep the method. Throws for any other: it would
 * take the token to another host, or a request's body to an address that the user has not given. `See other` is the response to a
 * request that has been processed: it names the result.
 */
async function followRedirect<R extends Response>(
  call: CallName,
  from: { url: string; canSendAgain: boolean },
  exchange: (url: string) => Promise<R>,
  fail: (text: string, hint: Message) => RedirectError,
): Promise<R> {
  let { url } = from;
  const isGet = call.method === "GET";
  for (let count = 0; ; count++) {
    const response = await exchange(url);
    const location = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || location === null) return response;
    const target = URL.canParse(location, url) ? new URL(location, url) : undefined;
    const isOwn = target?.origin === new URL(url).origin;
    if (isOwn && !isGet && response.status === 303) return response;
    await response.body?.cancel();
    const shown = target === undefined ? "an invalid address" : `${target.origin}${target.pathname}`;
    if (target === undefined || !isOwn) {
      throw fail(
        `${callName(call)} redirects to ${shown}, which is not followed: the token is for ${new URL(url).origin} only`,
        wording`If the service has moved, give its new address with ${{ option: "url" }} or in the profile.`,
      );
    }
    if (!isGet && !keepingStatuses.has(response.status)) {
      throw fail(
        `${callName(call)} redirects to ${shown} with ${response.status}; bough follows such redirects only for GET`,
        newAddressHint,
      );
    }
    if (count === maxRedirects)
      throw fail(`${callName(call)} redirects more than ${maxRedirects} times`, "Check the address.");
    target.username = "";
    target.password = "";
    url = target.href;
    if (from.canSendAgain) continue;
    throw new MovedError(`${callName(call)} redirects to ${shown}`, url, { hint: newAddressHint });
  }
}
