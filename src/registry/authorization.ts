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
  /** Notes what the registry asks for. Returns false if it can't be given, or what was `used` is all there is. */
  learn(challenge: Challenge, scopes: Scopes, used: string | undefined): Promise<boolean>;
}

interface AuthorizationOptions {
  clock: Clock;
  /** Called once, when the registry first asks. */
  findLogin: () => Promise<Login | undefined>;
  /** True if a token server may lack TLS. */
  isInsecure: boolean;
  /** Sends a request to a token server. Throws unless it responds with JSON and a status of success. */
  ask: (
    url: URL,
    init: { method: "GET" | "POST"; headers: Record<string, string>; body?: string },
    signal: AbortSignal,
  ) => Promise<unknown>;
}

interface Token {
  value: Secret;
  expires: number;
}

/** A token that one request asks for and others wait for. `signal`: of the one that asks. */
interface AskedToken {
  token: Promise<Token>;
  signal: AbortSignal;
}

/** A token is not used in its last seconds: a request takes some. */
const marginMilliseconds = 10_000;
/** https://distribution.github.io/distribution/spec/auth/token/: "If omitted, this defaults to 60 seconds." */
const defaultSeconds = 60;

/** Creates the answers to a registry's challenges: credentials themselves, or tokens that its token server gives for them. */
export function createAuthorization(options: AuthorizationOptions): Authorization {
  const { clock, findLogin, isInsecure, ask } = options;
  let challenge: Challenge | undefined;
  let login: Promise<Login | undefined> | undefined;
  const tokens = new Map<string, AskedToken>();
  const loginOnce = () => {
    login ??= findLogin();
    return login;
  };
  const forget = (key: string, asked: AskedToken) => {
    if (tokens.get(key) === asked) tokens.delete(key);
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
    for (let asked = tokens.get(key); asked !== undefined; asked = tokens.get(key)) {
      const found = await sharedToken(asked);
      if (found !== undefined && steadyTime(clock) < found.expires - marginMilliseconds) return found.value;
      forget(key, asked);
    }
    // Requests at the same time share a token: none of them waits between looking for one and asking.
    const asked = { token: fetchToken(parameters, known, scopes, signal), signal };
    tokens.set(key, asked);
    try {
      return (await asked.token).value;
    } catch (error) {
      forget(key, asked);
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
        `the registry asks for a token of ${JSON.stringify(realm)}, which is not an address`,
        { isTransient: false },
      );
    if (url.protocol === "http:" && !isInsecure)
      throw new RegistryError(
        `the registry asks for a token of ${url.origin}${url.pathname}, which is not encrypted`,
        { isTransient: false, hint: "`--tls-verify=false` allows that, in a network that you trust." },
      );
    const service = parameters.get("service");
    const now = steadyTime(clock);
    const answer = asRecord(
      known?.kind === "identity"
        ? await ask(url, refreshRequest(known.token, service, scopes), signal)
        : await ask(withQuery(url, service, scopes), tokenRequest(known), signal),
    );
    const value = asText(answer?.token) ?? asText(answer?.access_token);
    if (value === undefined || !/^[\x21-\x7e]+$/.test(value))
      throw new RegistryError(`${url.origin}${url.pathname} responded without a token`, {
        isTransient: false,
      });
    const seconds = Math.max(asNumber(answer?.expires_in) ?? 0, defaultSeconds);
    return { value: Secret.of(value), expires: now + seconds * 1000 };
  }

  return {
    header,
    async learn(asked, scopes, used) {
      const known = await loginOnce();
      challenge = asked;
      if (known?.kind === "registry") return used === undefined;
      if (asked.scheme === "basic") return known?.kind === "password" && used !== basic(known);
      // A token that is refused may have expired earlier than it says. Another request may have got a new one already.
      const key = scopes.join(" ");
      const shared = tokens.get(key);
      const current = await shared?.token.catch(() => undefined);
      if (shared !== undefined && current !== undefined && used === `Bearer ${current.value.text()}`)
        forget(key, shared);
      return true;
    },
  };
}

/** Returns `undefined` if the request that asks for the token is aborted. */
async function sharedToken({ token, signal }: AskedToken): Promise<Token | undefined> {
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

/** What a registry asks for in `WWW-Authenticate`. */
interface Challenge {
  scheme: "basic" | "bearer";
  /** Names are in lower case. */
  parameters: ReadonlyMap<string, string>;
}

/** Returns the challenge to answer: Bearer before Basic. `undefined` if neither is asked for. */
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
