import { type Clock, steadyTime } from "../clock.ts";
import type { Secret } from "../secret.ts";
import { asNumber, asRecord, asText } from "../service/http/json.ts";
import type { Challenge } from "./challenge.ts";
import { type Login, secretOf } from "./credentials.ts";
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

/** A token is not used in its last seconds: a request takes some. */
const marginMilliseconds = 10_000;
/** https://distribution.github.io/distribution/spec/auth/token/: "If omitted, this defaults to 60 seconds." */
const defaultSeconds = 60;

/** Creates the answers to a registry's challenges: credentials themselves, or tokens that its token server gives for them. */
export function createAuthorization({ clock, findLogin, ask }: AuthorizationOptions): Authorization {
  let challenge: Challenge | undefined;
  let login: Promise<Login | undefined> | undefined;
  const tokens = new Map<string, Promise<Token>>();
  const loginOnce = () => {
    login ??= findLogin();
    return login;
  };

  async function header(scopes: Scopes, signal: AbortSignal): Promise<string | undefined> {
    if (challenge === undefined) return undefined;
    const known = await loginOnce();
    if (known?.kind === "registry") return `Bearer ${textOf(known.token)}`;
    if (challenge.scheme === "basic") return known?.kind === "password" ? basic(known) : undefined;
    return `Bearer ${textOf(await token(challenge, known, scopes, signal))}`;
  }

  async function token(
    { parameters }: Challenge,
    known: Login | undefined,
    scopes: Scopes,
    signal: AbortSignal,
  ): Promise<Secret> {
    const key = scopes.join(" ");
    const found = await tokens.get(key)?.catch(() => undefined);
    if (found !== undefined && steadyTime(clock) < found.expires - marginMilliseconds) return found.value;
    // Requests at the same time share a token.
    const asked = fetchToken(parameters, known, scopes, signal);
    tokens.set(key, asked);
    return (await asked).value;
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
        { isPassing: false },
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
      throw new RegistryError(`${url.origin}${url.pathname} responded without a token`, { isPassing: false });
    const seconds = Math.max(asNumber(answer?.expires_in) ?? 0, defaultSeconds);
    return { value: secretOf(value), expires: now + seconds * 1000 };
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
      const current = await tokens.get(key)?.catch(() => undefined);
      if (current !== undefined && used === `Bearer ${textOf(current.value)}`) tokens.delete(key);
      return true;
    },
  };
}

function basic({ username, password }: Extract<Login, { kind: "password" }>): string {
  return `Basic ${Buffer.from(`${username}:${textOf(password)}`).toString("base64")}`;
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
    refresh_token: textOf(token),
  });
  return {
    method: "POST" as const,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: form.toString(),
  };
}

function textOf(secret: Secret): string {
  return Buffer.from(secret.reveal()).toString();
}
