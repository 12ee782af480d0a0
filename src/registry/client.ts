/** Requests to one repository of a registry: https://github.com/opencontainers/distribution-spec/blob/main/spec.md */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { watchedBody } from "../service/http/body-stream.ts";
import { readBeginning, readWhole } from "../service/http/bounded-body.ts";
import { explainFault } from "../service/http/connection.ts";
import { childOf, DeadlineError, startIdleTimer } from "../service/http/deadline.ts";
import { callName } from "../service/http/errors.ts";
import { parseRetryAfter, retryAfterIn } from "../service/http/retry.ts";
import type { Fetch } from "../service/service.ts";
import { tap } from "../streams.ts";
import { type Authorization, createAuthorization, type Scopes } from "./authorization.ts";
import { parseChallenge } from "./challenge.ts";
import { type Environment, findLogin, type Login } from "./credentials.ts";
import { isLoopback } from "./hosts.ts";
import { RegistryError, responseText } from "./registry-error.ts";
import type { Repository } from "./repository.ts";
import { isPassingStatus, retriesIn, waitBeforeRetry } from "./retry.ts";

export interface ClientOptions {
  repository: Repository;
  fetch: Fetch;
  clock: Clock;
  environment: Environment;
  /** Instead of those that docker and skopeo have stored. */
  login?: Login | undefined;
  /** True to accept a registry without TLS or with an unknown certificate. */
  isInsecure: boolean;
}

export interface RegistryRequest {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Below `/v2/NAME/`, or an address of the registry's own from its `Location`. */
  path: string | URL;
  scopes: Scopes;
  headers?: Record<string, string>;
  /** Called for each attempt. */
  body?: () => Uint8Array | AsyncIterable<Uint8Array>;
  /** Statuses, besides those of success, that the caller handles. */
  handles?: readonly number[];
}

export interface RegistryResponse {
  status: number;
  headers: Headers;
  /** The address that has responded, after redirects. */
  url: URL;
  /** At most `maxBytes`. Empty for a stream. */
  bytes: Uint8Array;
}

export interface RegistryClient {
  repository: Repository;
  /** Sends a request once. */
  once(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse>;
  /** Sends a request, and again where that may help. */
  send(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse>;
  /** Sends a request once, and returns the body to be read. It fails if no more bytes come. */
  open(
    request: RegistryRequest,
    signal: AbortSignal,
  ): Promise<RegistryResponse & { body: ReadableStream<Uint8Array> }>;
  /** Performs work that consists of requests, and again where that may help. `attempt` is 1 at first. */
  repeat<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests */
export const maxManifestBytes = 4 * 1024 * 1024;
/** Time without a byte sent, or until a response begins: a registry writes a large blob to a store of its own before it responds. */
const idleMilliseconds = 120_000;
const maxRedirects = 5;
/** One for what the registry asks for, and one for a token that has expired. */
const maxChallenges = 2;

export function createRegistryClient(options: ClientOptions): RegistryClient {
  const { repository, clock, environment, isInsecure } = options;
  const authorization = createAuthorization({
    clock,
    findLogin: async () => options.login ?? (await findLogin(repository, environment, async () => undefined)),
    ask: (url, init, signal) => askTokenServer(options, url, init, signal),
  });
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

  async function exchange(request: RegistryRequest, signal: AbortSignal): Promise<Exchanged> {
    const root = await baseFor(signal);
    let url =
      request.path instanceof URL ? request.path : new URL(`${repository.name}/${request.path}`, root);
    for (let [redirects, challenges] = [0, 0]; ; ) {
      // Only the registry itself gets the credentials, not the store that it redirects to.
      const isOwn = url.origin === root.origin;
      const header = isOwn ? await authorization.header(request.scopes, signal) : undefined;
      const exchanged = await sendOnce(options, { ...request, url, authorization: header }, signal);
      const { status, headers } = exchanged.response;
      const location = headers.get("location");
      if (isRedirect(status) && location !== null && /^(GET|HEAD)$/.test(request.method)) {
        exchanged.end();
        if (++redirects > maxRedirects) throw failed(exchanged, `redirects more than ${maxRedirects} times`);
        url = redirected(url, location, exchanged, isInsecure);
        continue;
      }
      if (status === 401 && isOwn && challenges++ < maxChallenges) {
        const challenge = parseChallenge(headers.get("www-authenticate"));
        if (challenge !== undefined && (await authorization.learn(challenge, request.scopes, header))) {
          exchanged.end();
          continue;
        }
      }
      if (!exchanged.response.ok && !(request.handles ?? []).includes(status))
        throw await refusal(exchanged, clock, signal);
      return exchanged;
    }
  }

  async function once(request: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse> {
    const exchanged = await exchange(request, signal);
    try {
      const { status, headers } = exchanged.response;
      const bytes = await readWhole(exchanged.response.body, maxManifestBytes, exchanged.signal);
      if (bytes === undefined) throw failed(exchanged, `responded with more than ${maxManifestBytes} bytes`);
      return { status, headers, url: exchanged.url, bytes };
    } catch (error) {
      throw signal.aborted ? signal.reason : faultOf(exchanged.name, error);
    } finally {
      exchanged.end();
    }
  }

  async function repeat<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof RegistryError)) throw error;
        const { status, isPassing, retryAfterMilliseconds } = error;
        const failure = { status, isPassing, retryAfterMilliseconds, attempt, random: Math.random() };
        const wait = waitBeforeRetry({ ...failure, retries: retriesIn(environment) });
        if (wait === undefined) throw error;
        await clock.sleep(wait, signal);
      }
    }
  }

  return {
    repository,
    once,
    repeat,
    send: (request, signal) => repeat(() => once(request, signal), signal),
    async open(request, signal) {
      const exchanged = await exchange(request, signal);
      const { response, name, url, stop } = exchanged;
      const { status, headers } = response;
      const explain = (error: unknown) => (signal.aborted ? signal.reason : faultOf(name, error));
      exchanged.stopTimer();
      const body = watchedBody(response.body, { clock, stop, explain });
      return { status, headers, url, bytes: new Uint8Array(), body };
    },
  };
}

/** A response whose body is still to be read. */
interface Exchanged {
  name: { method: string; url: string; shown: string };
  url: URL;
  response: Response;
  signal: AbortSignal;
  stop: ReturnType<typeof childOf>;
  stopTimer(): void;
  /** Gives up the connection, unless the body has been read. */
  end(): void;
}

interface SentRequest extends RegistryRequest {
  url: URL;
  authorization: string | undefined;
}

async function sendOnce(
  { fetch, clock, isInsecure }: ClientOptions,
  { method, url, headers, body, authorization }: SentRequest,
  signal: AbortSignal,
): Promise<Exchanged> {
  signal.throwIfAborted();
  const name = { method, url: url.href, shown: shownAddress(url) };
  const stop = childOf(signal);
  const timer = startIdleTimer(clock, idleMilliseconds, () =>
    stop.abort(new DeadlineError(`no answer within ${idleMilliseconds / 1000} s`)),
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
      timeout: false as unknown as number,
      ...(isInsecure && url.protocol === "https:" ? { tls: { rejectUnauthorized: false } } : {}),
    };
    const response = await fetch(url.href, init);
    timer.touch();
    return { name, url, response, signal: stop.signal, stop, stopTimer: () => timer.stop(), end };
  } catch (error) {
    end();
    throw signal.aborted ? signal.reason : faultOf(name, error);
  }
}

function sent(
  content: Uint8Array | AsyncIterable<Uint8Array>,
  onChunk: () => void,
): Uint8Array | AsyncGenerator<Uint8Array> {
  return content instanceof Uint8Array ? content : tap(content, onChunk);
}

/** Asks a registry that may lack TLS for its address. One on this machine is asked without it first, any other with it. */
async function findBase(
  options: ClientOptions,
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
      const said = await readBeginning(exchanged.response.body, exchanged.signal);
      exchanged.end();
      const challenge = parseChallenge(headers.get("www-authenticate"));
      if (status === 401 && challenge !== undefined) await authorization.learn(challenge, [], undefined);
      if (status === 401 || (status >= 200 && status < 300)) return url;
      throw new RegistryError(responseText(exchanged.name, status, new TextDecoder().decode(said)), {
        status,
        isPassing: isPassingStatus(status),
      });
    } catch (error) {
      signal.throwIfAborted();
      first ??= error;
    }
  }
  throw first;
}

async function askTokenServer(
  options: ClientOptions,
  url: URL,
  { method, headers, body }: { method: "GET" | "POST"; headers: Record<string, string>; body?: string },
  signal: AbortSignal,
): Promise<unknown> {
  const content = body === undefined ? {} : { body: () => Buffer.from(body) };
  const { authorization, ...others } = headers;
  const request = { method, path: url, url, scopes: [], headers: others, authorization, ...content };
  const exchanged = await sendOnce(options, request, signal);
  try {
    if (!exchanged.response.ok) throw await refusal(exchanged, options.clock, signal);
    const bytes = await readWhole(exchanged.response.body, maxManifestBytes, exchanged.signal);
    if (bytes === undefined) throw failed(exchanged, "responded with too many bytes");
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError) throw failed(exchanged, "responded with something else than a token");
    throw error instanceof BoughError ? error : faultOf(exchanged.name, error);
  } finally {
    exchanged.end();
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

function redirected(from: URL, location: string, exchanged: Exchanged, isInsecure: boolean): URL {
  const to = URL.parse(location, from.href);
  if (to === null || !/^https?:$/.test(to.protocol)) throw failed(exchanged, "redirects to no address");
  if (to.protocol === "http:" && from.protocol === "https:" && !isInsecure)
    throw failed(exchanged, `redirects to ${shownAddress(to)}, which is not encrypted`);
  return to;
}

/** The query of a store's address contains its signature, and that of an upload's the registry's state. */
function shownAddress({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function failed({ name }: Pick<Exchanged, "name">, what: string): RegistryError {
  return new RegistryError(`${callName(name)} ${what}`, { isPassing: false });
}

async function refusal(exchanged: Exchanged, clock: Clock, signal: AbortSignal): Promise<RegistryError> {
  const { response, name } = exchanged;
  const { status, headers } = response;
  let said = new Uint8Array();
  try {
    said = new Uint8Array(await readBeginning(response.body, exchanged.signal));
  } catch {
    signal.throwIfAborted();
  } finally {
    exchanged.end();
  }
  return new RegistryError(responseText(name, status, new TextDecoder().decode(said)), {
    status,
    isPassing: isPassingStatus(status),
    retryAfterMilliseconds: parseRetryAfter(retryAfterIn(headers), clock.now()),
  });
}

function faultOf(name: Exchanged["name"], error: unknown): BoughError {
  if (error instanceof BoughError) return error;
  const { reason, hint, permanent } = explainFault(error);
  return new RegistryError(`${callName(name)}: ${reason}`, { isPassing: !permanent, hint, cause: error });
}
