/** Requests to the services that signing needs: a certificate authority, a transparency log, a timestamp authority. */

import type { Clock } from "../clock.ts";
import { BoughError, usageError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { createTlsTrust } from "../registry/certificates.ts";
import {
  protocolError,
  responseError,
  retriesIn,
  retryTransient,
  sendOnce,
  transportError,
} from "../registry/exchange.ts";
import { rateLimitsOf } from "../registry/rate-limits.ts";
import { isLoopback } from "../registry/repository.ts";
import { readWhole } from "../service/http/bounded-body.ts";
import type { Fetch } from "../service/service.ts";

interface ServiceResponse {
  status: number;
  /** The address in `Location`. */
  location: URL | undefined;
  bytes: Uint8Array;
  /** The call, for messages. */
  name: Parameters<typeof protocolError>[0]["name"];
}

export interface SigningService {
  /** @param handles statuses, besides those of success, that the caller handles */
  post(
    path: string,
    content: { json: object } | { type: string; bytes: Uint8Array },
    signal: AbortSignal,
    handles?: readonly number[],
  ): Promise<ServiceResponse>;
  get(path: string, signal: AbortSignal, authorization?: string): Promise<ServiceResponse>;
  /** Throws the error of a response that lacks something. */
  fail(response: ServiceResponse): never;
}

export interface ServiceDependencies {
  fetch: Fetch;
  clock: Clock;
  environment: Environment;
}

const maxResponseBytes = 1024 * 1024;

/** Creates a client for the service at an address. It repeats requests after transient failures, as for registries. */
export function createSigningService(
  address: string,
  { fetch, clock, environment }: ServiceDependencies,
): SigningService {
  const base = new URL(address.endsWith("/") || address.includes("?") ? address : `${address}/`);
  const options = { fetch, clock, trust: createTlsTrust(environment, false), limits: rateLimitsOf(clock) };
  const retries = retriesIn(environment);

  async function once(
    path: string,
    request: { body?: Uint8Array; type?: string; authorization?: string | undefined },
    handles: readonly number[],
    signal: AbortSignal,
  ): Promise<ServiceResponse> {
    const url = path === "" ? new URL(address) : new URL(path, base);
    const { body, type, authorization } = request;
    const headers = { accept: "*/*", ...(type !== undefined && { "content-type": type }) };
    const method = body === undefined ? "GET" : "POST";
    const sent = await sendOnce(
      options,
      { method, url, path: url, scopes: [], headers, authorization, ...(body && { body: () => body }) },
      signal,
    );
    const { status, ok, headers: answered } = sent.response;
    if (!ok && !handles.includes(status)) throw await responseError(sent, clock, signal);
    try {
      const bytes = await readWhole(sent.response.body, maxResponseBytes, sent.signal);
      if (bytes === undefined)
        throw protocolError(sent, `responded with more than ${maxResponseBytes} bytes`);
      const location = URL.parse(answered.get("location") ?? "", url.href) ?? undefined;
      return { status, location, bytes, name: sent.name };
    } catch (error) {
      throw signal.aborted
        ? signal.reason
        : error instanceof BoughError
          ? error
          : transportError(sent.name, error);
    } finally {
      sent.end();
    }
  }

  const repeat = (work: () => Promise<ServiceResponse>, signal: AbortSignal) =>
    retryTransient(work, { clock, retries }, signal);

  return {
    post(path, content, signal, handles = []) {
      const request =
        "json" in content
          ? { body: Buffer.from(JSON.stringify(content.json)), type: "application/json" }
          : { body: content.bytes, type: content.type };
      return repeat(() => once(path, request, handles, signal), signal);
    },
    get: (path, signal, authorization) => repeat(() => once(path, { authorization }, [], signal), signal),
    fail(response) {
      throw protocolError(response, "responded with unexpected content");
    },
  };
}

/** Throws for an address without TLS, to which no secret may be sent, unless it is on this machine. */
export function requireServiceAddress(text: string, option: string): string {
  const url = URL.parse(text);
  const isFit = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.host));
  if (isFit && url.username === "" && url.password === "") return text;
  throw usageError(
    `${option} takes an address with https://, not ${JSON.stringify(text)}`,
    "Without TLS, only a service on this machine may be used.",
  );
}
