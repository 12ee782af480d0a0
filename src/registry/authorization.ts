import { type Clock, steadyTime } from "../clock.ts";
import { Secret } from "../secret.ts";
import { asNumber, asRecord, asText } from "../service/http/json.ts";
import type { Login } from "./credentials.ts";
import { RegistryError } from "./registry-error.ts";

/** Scopes such as `repository:team/app:pull,push`. https://distribution.github.io/distribution/spec/auth/scope/ */
export type Scopes = readonly string[];

export interface Authorization {
  /** Returns the value of the header for a request; `undefined` as long as the registry has not asked for one. */
  header(scopes: Scopes, signal: AbortSignal): Promise<string | undefined>;
  /** Takes the challenge of a response. Returns false if another attempt can send nothing else than the `used` header. */
  handleChallenge(challenge: Challenge, scopes: Scopes, used: string | undefined): Promise<boolean>;
}

interface AuthorizationOptions {
  clock: Clock;
  /** Called once, for the registry's first challenge. */
  findLogin: () => Promise<Login | undefined>;
  /** True if a token server may lack TLS. */
  isInsecure: boolean;
  /** Sends a request to a token server. Throws unless it responds with JSON and a status of success. */
  requestToken: (
    url: URL,
    init: { method: "GET" | "POST"; headers: Record<string, string>; body?: string },
    signal: AbortSignal,
  ) => Promise<unknown>;
}

interface Token {
  value: Secret;
  expires: number;
}

/** A token that one request fetches and others wait for. `signal` belongs to the request that fetches it. */
interface PendingToken {
  token: Promise<Token>;
  signal: AbortSignal;
}

/** A token is not used for this long before it expires, since a request takes time. */
const marginMilliseconds = 10_000;
/** https://distribution.github.io/distribution/spec/auth/token/: "If omitted, this defaults to 60 seconds." */
const defaultSeconds = 60;

/** Responds to a registry's challenges with credentials, or with tokens that its token server issues for them. */
export function createAuthorization(options: AuthorizationOptions): Authorization {
  const { clock, findLogin, isInsecure, requestToken } = options;
  let challenge: Challenge | undefined;
  let login: Promise<Login | undefined> | undefined;
  const tokens = new Map<string, PendingToken>();
  const loginOnce = () => {
    login ??= findLogin();
    return login;
  };
  const forget = (key: string, pending: PendingToken) => {
    if (tokens.get(key) === pending) tokens.delete(key);
  };

  async function header(scopes: Scopes, signal: AbortSignal): Promise<string | undefined> {
    if (challenge === undefined) return undefined;
    const known = await loginOnce();
    if (known?.kind === "registry") return `Bearer ${known.token.text()}`;
    if (challenge.scheme === "basic") return known?.kind === "password" ? basic(known) : undefined;
    return `Bearer ${(await token(challenge, known, scopes, signal)).text()}`;
  }

  async function token(
    { parameters }: Challenge,
    known: Login | undefined,
    scopes: Scopes,
    signal: AbortSignal,
  ): Promise<Secret> {
    const key = scopes.join(" ");
    for (let pending = tokens.get(key); pending !== undefined; pending = tokens.get(key)) {
      const found = await sharedToken(pending);
      if (found !== undefined && steadyTime(clock) < found.expires - marginMilliseconds) return found.value;
      forget(key, pending);
    }
    // Concurrent requests share a token: nothing is awaited between the look-up and `set`.
    const pending = { token: fetchToken(parameters, known, scopes, signal), signal };
    tokens.set(key, pending);
    try {
      return (await pending.token).value;
    } catch (error) {
      forget(key, pending);
      throw error;
    }
  }

  async function fetchToken(
    parameters: Challenge["parameters"],
    known: Login | undefined,
    scopes: Scopes,
    signal: AbortSignal,
  ): Promise<Token> {
    const realm = parameters.get("realm") ?? "";
    const url = URL.parse(realm);
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new RegistryError(
        `the registry's challenge has an invalid realm, the address of its token server: ${JSON.stringify(realm)}`,
        { isTransient: false },
      );
    if (url.protocol === "http:" && !isInsecure)
      throw new RegistryError(
        `the registry names the token server ${url.origin}${url.pathname}, which is not encrypted`,
        {
          isTransient: false,
          hint: "`--tls-verify=false` allows that, in a network that you trust.",
        },
      );
    const service = parameters.get("service");
    const now = steadyTime(clock);
    const response = asRecord(
      known?.kind === "identity"
        ? await requestToken(url, refreshRequest(known.token, service, scopes), signal)
        : await requestToken(withQuery(url, service, scopes), tokenRequest(known), signal),
    );
    const value = asText(response?.token) ?? asText(response?.access_token);
    if (value === undefined || !/^[\x21-\x7e]+$/.test(value))
      throw new RegistryError(`${url.origin}${url.pathname} responded without a token`, {
        isTransient: false,
      });
    const seconds = Math.max(asNumber(response?.expires_in) ?? 0, defaultSeconds);
    return { value: Secret.of(value), expires: now + seconds * 1000 };
  }

  return {
    header,
    async handleChallenge(received, scopes, used) {
      const known = await loginOnce();
      challenge = received;
      if (known?.kind === "registry") return used === undefined;
      if (received.scheme === "basic") return known?.kind === "password" && used !== basic(known);
      // A rejected token may have expired earlier than it says. Another request may have got a new one already.
      const key = scopes.join(" ");
      const shared = tokens.get(key);
      const current = await shared?.token.catch(() => undefined);
      if (shared !== undefined && current !== undefined && used === `Bearer ${current.value.text()}`)
        forget(key, shared);
      return true;
    },
  };
}

/** Returns `undefined` if the request that fetches the token is aborted. */
async function sharedToken({ token, signal }: PendingToken): Promise<Token | undefined> {
  try {
    return await token;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

function basic({ username, password }: Extract<Login, { kind: "password" }>): string {
  return `Basic ${Buffer.from(`${username}:${password.text()}`).toString("base64")}`;
}

function tokenRequest(login: Login | undefined) {
  return {
    method: "GET" as const,
    headers: login?.kind === "password" ? { authorization: basic(login) } : {},
  };
}

function withQuery(realm: URL, service: string | undefined, scopes: Scopes): URL {
  const url = new URL(realm);
  if (service !== undefined) url.searchParams.set("service", service);
  for (const scope of scopes) url.searchParams.append("scope", scope);
  return url;
}

/** https://distribution.github.io/distribution/spec/auth/oauth/ */
function refreshRequest(token: Secret, service: string | undefined, scopes: Scopes) {
  const form = new URLSearchParams({
    grant_type: "refresh_token",
    client_id: "bough",
    ...(service === undefined ? {} : { service }),
    scope: scopes.join(" "),
    refresh_token: token.text(),
  });
  return {
    method: "POST" as const,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: form.toString(),
  };
}

/** A challenge of a registry, in `WWW-Authenticate`. */
interface Challenge {
  scheme: "basic" | "bearer";
  /** Names are in lower case. */
  parameters: ReadonlyMap<string, string>;
}

/** Returns the challenge to respond to: Bearer before Basic. `undefined` if the header has neither. */
export function parseChallenge(header: string | null): Challenge | undefined {
  const found = parseAll(header ?? "");
  return found.find(({ scheme }) => scheme === "bearer") ?? found.find(({ scheme }) => scheme === "basic");
}

/** RFC 9110, 11.6.1: challenges and their parameters are separated by commas alike. */
function parseAll(header: string): Challenge[] {
  const challenges: { scheme: Challenge["scheme"] | undefined; parameters: Map<string, string> }[] = [];
  const pattern = /([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?[\s,]*/y;
  for (;;) {
    const match = pattern.exec(header);
    if (match === null) break;
    const [text, name = "", quoted, token] = match;
    if (text === "") break;
    if (quoted === undefined && token === undefined)
      challenges.push({ scheme: schemes[name.toLowerCase()], parameters: new Map() });
    else
      challenges.at(-1)?.parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? token ?? "");
  }
  return challenges.flatMap(({ scheme, parameters }) =>
    scheme === undefined ? [] : [{ scheme, parameters }],
  );
}

const schemes: Readonly<Record<string, Challenge["scheme"]>> = { basic: "basic", bearer: "bearer" };
