/** Requests to one repository of a registry: https://github.com/opencontainers/distribution-spec/blob/main/spec.md */

import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { watchedBody } from "../service/http/body-stream.ts";
import { readBeginning, readWhole } from "../service/http/bounded-body.ts";
import type { Fetch } from "../service/service.ts";
import { type Authorization, createAuthorization, parseChallenge } from "./authorization.ts";
import { createTlsTrust } from "./certificates.ts";
import { credentialHelpers, findLogin, type Login } from "./credentials.ts";
import {
  type Exchanged,
  isTransientStatus,
  protocolError,
  type RegistryRequest,
  responseError,
  retriesIn,
  retryTransient,
  type SendOptions,
  sendOnce,
  shownAddress,
  transportError,
} from "./exchange.ts";
import { rateLimitsOf } from "./rate-limits.ts";
import { RegistryError, responseText } from "./registry-error.ts";
import { isDowngrade, isLoopback, type Repository } from "./repository.ts";

interface ClientOptions {
  repository: Repository;
  fetch: Fetch;
  clock: Clock;
  environment: Environment;
  /** Replaces the credentials that docker and skopeo have stored. */
  login?: Login | undefined;
  /** True to accept a registry without TLS or with an unknown certificate. */
  isInsecure: boolean;
  /** The number of further attempts after a failure. Default: as the environment says. */
  retries?: number;
}

export interface RegistryResponse {
  status: number;
  headers: Headers;
  /** The address that has responded, after redirects. */
  url: URL;
  /** The body, at most `maxManifestBytes`. Empty for a stream. */
  bytes: Uint8Array;
}

export interface RegistryClient {
  repository: Repository;
  /** The number of further attempts after a failure. */
  retries: number;
  /** True for a registry that may lack TLS. */
  isInsecure: boolean;
  /** Sends a request once. */
  once(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse>;
  /** Sends a request, and repeats it after a transient failure. */
  send(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse>;
  /** Sends a request once, and returns the body as a stream, which fails after a time without bytes. */
  open(
    request: RegistryRequest,
    signal: AbortSignal,
  ): Promise<RegistryResponse & { body: ReadableStream<Uint8Array> }>;
  /** Performs work that consists of requests, and repeats it after a transient failure. */
  repeat<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests */
export const maxManifestBytes = 4 * 1024 * 1024;
const maxRedirects = 5;
/** The first challenge says what the registry accepts, a second one that a token has expired. */
const maxChallenges = 2;

export function createRegistryClient(given: ClientOptions): RegistryClient {
  const { repository, clock, environment, isInsecure } = given;
  const options = { ...given, trust: createTlsTrust(environment, isInsecure), limits: rateLimitsOf(clock) };
  const authorization = createAuthorization({
    clock,
    findLogin: async () =>
      options.login ?? (await findLogin(repository, environment, credentialHelpers(environment, clock))),
    isInsecure,
    requestToken: (url, init, signal) => callTokenServer(options, url, init, signal),
  });
  const { retries = retriesIn(environment) } = given;
  let base: Promise<URL> | undefined;
  /** Returns the address below which the registry has its interface. */
  const baseFor = async (signal: AbortSignal): Promise<URL> => {
    if (!isInsecure) return new URL(`https://${repository.host}/v2/`);
    base ??= findBase(options, authorization, signal);
    try {
      return await base;
    } catch (error) {
      base = undefined;
      throw error;
    }
  };

  /** Returns true if a challenge shows how to send a request again. `sent`: the rejected header. */
  async function handleChallenge(headers: Headers, scopes: readonly string[], sent: string | undefined) {
    const challenge = parseChallenge(headers.get("www-authenticate"));
    return challenge !== undefined && (await authorization.handleChallenge(challenge, scopes, sent));
  }

  async function exchange(request: RegistryRequest, signal: AbortSignal): Promise<Exchanged> {
    const root = await baseFor(signal);
    let url =
      request.path instanceof URL ? request.path : new URL(`${repository.name}/${request.path}`, root);
    for (let [redirects, challenges] = [0, 0]; ; ) {
      // The registry itself gets the credentials, the store to which it redirects does not.
      const isOwn = url.origin === root.origin;
      const header = isOwn ? await authorization.header(request.scopes, signal) : undefined;
      const exchanged = await sendOnce(options, { ...request, url, authorization: header }, signal);
      const { status, headers } = exchanged.response;
      const location = headers.get("location");
      if (isRedirect(status) && location !== null && /^(GET|HEAD)$/.test(request.method)) {
        exchanged.end();
        if (++redirects > maxRedirects)
          throw protocolError(exchanged, `redirects more than ${maxRedirects} times`);
        url = redirected(url, location, exchanged, isInsecure);
      } else if (
        status === 401 &&
        isOwn &&
        challenges++ < maxChallenges &&
        (await handleChallenge(headers, request.scopes, header))
      ) {
        exchanged.end();
      } else if (exchanged.response.ok || request.handles?.includes(status) === true) return exchanged;
      else throw await responseError(exchanged, clock, signal);
    }
  }

  async function once(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse> {
    const exchanged = await exchange(request, signal);
    try {
      const { status, headers } = exchanged.response;
      const bytes = await readWhole(exchanged.response.body, maxManifestBytes, exchanged.signal);
      if (bytes === undefined)
        throw protocolError(exchanged, `responded with more than ${maxManifestBytes} bytes`);
      return { status, headers, url: exchanged.url, bytes };
    } catch (error) {
      throw signal.aborted ? signal.reason : transportError(exchanged.name, error);
    } finally {
      exchanged.end();
    }
  }

  const repeat: RegistryClient["repeat"] = (work, signal) => retryTransient(work, { clock, retries }, signal);

  return {
    repository,
    retries,
    isInsecure,
    once,
    repeat,
    send: (request, signal) => repeat(() => once(request, signal), signal),
    async open(request, signal) {
      const exchanged = await exchange(request, signal);
      const { response, name, url, stop } = exchanged;
      const { status, headers } = response;
      const explain = (error: unknown) => (signal.aborted ? signal.reason : transportError(name, error));
      exchanged.stopTimer();
      const body = watchedBody(response.body, { clock, stop, explain });
      return { status, headers, url, bytes: new Uint8Array(), body };
    },
  };
}

/** Finds out whether a registry that may lack TLS has it. Tries http first for a registry on this machine, https for any other. */
async function findBase(
  options: SendOptions & Pick<ClientOptions, "repository">,
  authorization: Authorization,
  signal: AbortSignal,
): Promise<URL> {
  const { host } = options.repository;
  const schemes = isLoopback(host) ? ["http", "https"] : ["https", "http"];
  let first: unknown;
  for (const scheme of schemes) {
    const url = new URL(`${scheme}://${host}/v2/`);
    try {
      const exchanged = await sendOnce(
        options,
        { method: "GET", path: url, url, scopes: [], authorization: undefined },
        signal,
      );
      const { status, headers } = exchanged.response;
      const beginning = await readBeginning(exchanged.response.body, exchanged.signal).finally(() =>
        exchanged.end(),
      );
      const challenge = parseChallenge(headers.get("www-authenticate"));
      if (status === 401 && challenge !== undefined)
        await authorization.handleChallenge(challenge, [], undefined);
      if (status === 401 || (status >= 200 && status < 300)) return url;
      throw new RegistryError(responseText(exchanged.name, status, new TextDecoder().decode(beginning)), {
        status,
        isTransient: isTransientStatus(status),
      });
    } catch (error) {
      signal.throwIfAborted();
      first ??= error;
    }
  }
  throw first;
}

async function callTokenServer(
  options: SendOptions,
  url: URL,
  { method, headers, body }: { method: "GET" | "POST"; headers: Record<string, string>; body?: string },
  signal: AbortSignal,
): Promise<unknown> {
  const content = body === undefined ? {} : { body: () => Buffer.from(body) };
  const { authorization, ...others } = headers;
  const request = { method, path: url, url, scopes: [], headers: others, authorization, ...content };
  const exchanged = await sendOnce(options, request, signal);
  try {
    if (!exchanged.response.ok) throw await responseError(exchanged, options.clock, signal);
    const bytes = await readWhole(exchanged.response.body, maxManifestBytes, exchanged.signal);
    if (bytes === undefined) throw protocolError(exchanged, "responded with too many bytes");
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw protocolError(exchanged, "responded with invalid JSON instead of a token");
    throw error instanceof BoughError ? error : transportError(exchanged.name, error);
  } finally {
    exchanged.end();
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

function redirected(from: URL, location: string, exchanged: Exchanged, isInsecure: boolean): URL {
  const to = URL.parse(location, from.href);
  // The address itself is left out: that of a storage has a signature, with which whoever reads the message could fetch the file.
  if (to === null) throw protocolError(exchanged, "redirects to an invalid address");
  if (!/^https?:$/.test(to.protocol))
    throw protocolError(
      exchanged,
      `redirects to an address that begins with ${to.protocol}, not with http or https`,
    );
  if (isDowngrade(from, to) && !isInsecure)
    throw protocolError(exchanged, `redirects to ${shownAddress(to)}, which is not encrypted`);
  return to;
}
