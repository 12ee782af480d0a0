/**
 * One request and its answer over the given fetch. The only place that knows the token: it goes into one header of
 * requests to the service's own origin, and `redact` takes it out of every text that leaves the client.
 */
import { createFetch } from "ofetch";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Fetch } from "../service.ts";
import { addressOf, parseBaseUrl, urlOf, withoutCredentials } from "./address.ts";
import type { CallName } from "./failure-text.ts";
import { followRedirect } from "./redirect.ts";

export interface ExchangeOptions {
  clock: Clock;
  fetch: Fetch;
  baseUrl: string;
  /** What people know the service by where its address is not for them. */
  address?: string;
  token?: string;
  project?: string;
  userAgent: string;
}

export type Body = NonNullable<RequestInit["body"]>;

export interface RequestParts {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** The path from `/v1/` on. */
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /**
   * Never over a connection that has been idle, which the server may be closing at that very moment: it would be unknown
   * whether the request was received.
   */
  overNewConnection?: boolean;
}

export interface Exchange {
  hasToken: boolean;
  redact(text: string): string;
  nameOf(parts: RequestParts): CallName;
  /**
   * The answer's body is still to be read, by somebody who counts its bytes. `isWatched`: and who notices by himself that
   * nothing comes any more. Rejects with what fetch threw, or with a BoughError for a redirect that is not followed.
   */
  send(
    parts: RequestParts,
    body: Body | undefined,
    signal: AbortSignal,
    options?: { isWatched: boolean },
  ): Promise<Response>;
}

const acceptedEncodings = "gzip, deflate, br, zstd";
/** Servers close connections that are idle for longer; the shortest usual time is five seconds. */
const idleMilliseconds = 2000;

export function createExchange(options: ExchangeOptions): Exchange {
  const { clock } = options;
  const base = parseBaseUrl(options.baseUrl);
  const address = addressOf(base);
  const token = options.token === undefined ? undefined : checkToken(options.token);
  // ofetch makes requests and streams of answers out of options. Its retries, timeouts and parsing are off: what may be repeated,
  // how long it may take and how many bytes count are for transport.ts and answer.ts.
  // It asks for Bun's whole fetch, of which it only ever calls the function itself.
  const $fetch = createFetch({ fetch: options.fetch as typeof globalThis.fetch });
  let lastAnswer = 0;
  const isIdle = () => clock.now() - lastAnswer > idleMilliseconds;
  const redact = (text: string) => (token === undefined ? text : text.replaceAll(token, "***"));

  /** Names are in small letters here and in the parts. */
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
        return options.address === undefined ? withoutCredentials(url) : url.slice(base.origin.length);
      },
    };
  }

  return {
    hasToken: token !== undefined,
    redact,
    nameOf,
    async send(parts, body, signal, { isWatched } = { isWatched: false }) {
      const request = {
        method: parts.method,
        headers: { ...usualHeaders, ...parts.headers, ...ownHeaders },
        ...(body === undefined ? {} : { body, duplex: "half" as const }),
        ...(parts.overNewConnection === true && isIdle() ? { keepalive: false } : {}),
        redirect: "manual" as const,
        retry: false as const,
        ignoreResponseError: true,
        signal,
        responseType: "stream" as const,
        decompress: false,
        // Bun ends a connection on which nothing passes for five minutes; who reads an event stream knows better.
        ...(isWatched ? { timeout: false as unknown as number } : {}),
      };
      const response = await followRedirect(
        nameOf(parts),
        (url) => $fetch.raw<unknown, "stream">(url, request),
        (text, hint) => new BoughError(redact(text), { hint }),
      );
      lastAnswer = clock.now();
      if (!response.headers.has("content-encoding")) return response;
      // Loaded for a compressed answer only: it takes longer than a request does.
      return (await import("./decompression.ts")).decompressed(response);
    },
  };
}

/** A header takes visible ASCII only; the error must not show what it is about. */
function checkToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new BoughError(
    "the token is empty or has a character in it that no token has (a space, a line end?)",
    { kind: "usage", hint: "Check --token, CONTREE_TOKEN or the profile's token." },
  );
}
