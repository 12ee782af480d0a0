/**
 * The client of GitHub's cache service, version 2: JSON requests name entries, signed addresses of a blob storage have their content.
 * An entry has a key, is written once, and never changes. GitHub's client: https://github.com/actions/toolkit/tree/main/packages/cache
 */

import { type Clock, steadyTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { watchedBody } from "../../service/http/body-stream.ts";
import { readWhole } from "../../service/http/bounded-body.ts";
import { asText, parseRecord } from "../../service/http/json.ts";
import type { Fetch } from "../../service/service.ts";
import { sha256Of } from "../../sha256.ts";
import { createTlsTrust } from "../certificates.ts";
import {
  type Exchanged,
  protocolError,
  type RegistryRequest,
  responseError,
  sendOnce,
  transportError,
} from "../exchange.ts";
import { RegistryError } from "../registry-error.ts";
import type { GithubAccess } from "./access.ts";

/** A complete entry. The signed `url` is for downloads, and expires. */
export interface GithubCacheEntry {
  key: string;
  url: string;
}

/** Part of an entry. `total`: the size of the whole entry. */
export interface EntryPart {
  total: number;
  body: ReadableStream<Uint8Array>;
}

export interface CacheService {
  /** Finds the entry with a key, or for `prefix` the newest one whose key begins with it. */
  find(key: string, match: "exact" | "prefix", signal: AbortSignal): Promise<GithubCacheEntry | undefined>;
  /** Begins an entry. Returns the signed address for its content; `undefined` if the key is taken, by a complete entry or not. */
  reserve(key: string, signal: AbortSignal): Promise<string | undefined>;
  /** Completes an entry. */
  finalize(key: string, size: number, signal: AbortSignal): Promise<void>;
  /** Opens part of an entry. Returns `undefined` if the entry is gone, or its address has expired. */
  open(
    url: string,
    part: { start: number; end: number },
    signal: AbortSignal,
  ): Promise<EntryPart | undefined>;
  /** Sends the whole content of an entry. */
  put(url: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  putBlock(url: string, id: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Joins blocks to the content of an entry. */
  putBlockList(url: string, ids: readonly string[], signal: AbortSignal): Promise<void>;
}

interface ServiceOptions {
  access: GithubAccess;
  fetch: Fetch;
  clock: Clock;
  environment: Environment;
}

const servicePath = "twirp/github.actions.results.api.v1.CacheService/";
/** The version in all requests, which keeps bough's entries apart from those of other programs. */
const version = sha256Of("bough cache 1");
const maxResponseBytes = 1024 * 1024;
/** Headers for the blob storage: https://learn.microsoft.com/rest/api/storageservices/put-blob */
const storageHeaders = { "x-ms-version": "2020-10-02" };
/** The limit of attempts without any response. A busy service responds. */
const maxAttemptsWithoutResponse = 3;
const minBackoffMilliseconds = 1000;
const maxBackoffMilliseconds = 30_000;

export function createCacheService(options: ServiceOptions): CacheService {
  const { clock } = options;
  const { repeat, exchange, call, store } = createRequests(options);

  async function find(key: string, match: "exact" | "prefix", signal: AbortSignal) {
    const restore_keys = match === "prefix" ? [key] : [];
    const found = await call("GetCacheEntryDownloadURL", { key, restore_keys }, signal);
    if (found?.isOk !== true) return undefined;
    const matched = asText(found.record.matched_key) ?? key;
    const isWanted = match === "exact" ? matched === key : matched.startsWith(key);
    return isWanted ? { key: matched, url: found.address("signed_download_url") } : undefined;
  }

  return {
    find,
    async reserve(key, signal) {
      const reserved = await call("CreateCacheEntry", { key }, signal);
      if (reserved?.isOk === true) return reserved.address("signed_upload_url");
      if (reserved === undefined || (await find(key, "exact", signal)) !== undefined) return undefined;
      // Most likely the token is read-only.
      throw new RegistryError(
        `the service rejects the entry: ${asText(reserved.record.message) || "no reason given"}`,
        { status: 403, isTransient: false },
      );
    },
    async finalize(key, size, signal) {
      const size_bytes = String(size);
      const done = await call("FinalizeCacheEntryUpload", { key, size_bytes }, signal);
      // For status 409, an earlier attempt has completed it.
      if (done !== undefined && !done.isOk)
        throw protocolError(
          done.sent,
          `rejected the entry: ${asText(done.record.message) || "no reason given"}`,
        );
    },
    open: (address, { start, end }, signal) =>
      repeat(async () => {
        const url = new URL(address);
        const headers = { ...storageHeaders, range: `bytes=${start}-${end - 1}` };
        const sent = await exchange({ method: "GET", url, headers, handles: [403, 404, 416] }, signal);
        const { status, headers: answered, body } = sent.response;
        if (status >= 400) {
          sent.end();
          return undefined;
        }
        const [, first, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answered.get("content-range") ?? "") ?? [];
        if (status !== 206 || Number(first) !== start)
          throw protocolError(sent, "does not respond with the range");
        sent.stopTimer();
        const explain = (error: unknown) =>
          signal.aborted ? signal.reason : transportError(sent.name, error);
        return { total: Number(total), body: watchedBody(body, { clock, stop: sent.stop, explain }) };
      }, signal),
    put: (url, bytes, signal) => store(new URL(url), bytes, { "x-ms-blob-type": "BlockBlob" }, signal),
    putBlock: (url, id, bytes, signal) =>
      store(withQuery(url, { comp: "block", blockid: id }), bytes, {}, signal),
    putBlockList(url, ids, signal) {
      const blocks = ids.map((id) => `<Latest>${id}</Latest>`).join("");
      const list = Buffer.from(`<?xml version="1.0" encoding="utf-8"?><BlockList>${blocks}</BlockList>`);
      const headers = { "content-type": "application/xml" };
      return store(withQuery(url, { comp: "blocklist" }), list, headers, signal);
    },
  };
}

/** Sends requests to the service and to its blob storage. */
function createRequests({ access, fetch, clock, environment }: ServiceOptions) {
  const options = { fetch, clock, trust: createTlsTrust(environment, false) };
  const repeat = createRepeater(clock, access);

  async function exchange(
    request: Omit<RegistryRequest, "path" | "scopes"> & { url: URL; authorization?: string },
    signal: AbortSignal,
  ): Promise<Exchanged> {
    const { authorization, url } = request;
    const sent = await sendOnce(options, { ...request, path: url, scopes: [], authorization }, signal);
    const { status, ok } = sent.response;
    if (!ok && !(request.handles ?? []).includes(status)) throw await responseError(sent, clock, signal);
    return sent;
  }

  async function bytesOf(sent: Exchanged, signal: AbortSignal): Promise<Uint8Array> {
    try {
      const bytes = await readWhole(sent.response.body, maxResponseBytes, sent.signal);
      if (bytes === undefined)
        throw protocolError(sent, `responded with more than ${maxResponseBytes} bytes`);
      return bytes;
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

  /** Calls a method of the service. Returns `undefined` for status 409: the entry exists. */
  function call(method: string, fields: object, signal: AbortSignal) {
    const url = new URL(`${servicePath}${method}`, access.url);
    const body = Buffer.from(JSON.stringify({ ...fields, version }));
    return repeat(async () => {
      const sent = await exchange(
        {
          ...{ method: "POST", url, body: () => body, handles: [409] },
          headers: { "content-type": "application/json", accept: "application/json" },
          authorization: `Bearer ${access.token.text()}`,
        },
        signal,
      );
      const { status } = sent.response;
      const record = parseRecord(await bytesOf(sent, signal));
      if (status === 409) return undefined;
      if (record === undefined) throw protocolError(sent, "responded with something else than JSON");
      const address = (name: string) => {
        const text = asText(record[name]) ?? "";
        if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
          throw protocolError(sent, `responded without ${name}`);
        return text;
      };
      return { isOk: record.ok === true, record, address, sent };
    }, signal);
  }

  async function store(url: URL, body: Uint8Array, headers: Record<string, string>, signal: AbortSignal) {
    await repeat(async () => {
      const length = { "content-length": String(body.byteLength) };
      const all = { ...storageHeaders, ...length, ...headers };
      const sent = await exchange({ method: "PUT", url, body: () => body, headers: all }, signal);
      await bytesOf(sent, signal);
    }, signal);
  }

  return { repeat, exchange, call, store };
}

/** Returns a function that repeats requests while the service is busy, until all requests together have waited too long. */
function createRepeater(clock: Clock, { maxWaitMilliseconds }: Pick<GithubAccess, "maxWaitMilliseconds">) {
  let [pausedUntil, waited] = [0, 0];

  /** Delays all requests after the failed attempt of one. Throws if they have waited too long. */
  function pauseAll(error: RegistryError, attempt: number): void {
    const full = Math.min(maxBackoffMilliseconds, minBackoffMilliseconds * 2 ** (attempt - 1));
    const backoff = full * (1 - Math.random() / 2);
    const wait = Math.max(error.retryAfterMilliseconds ?? 0, backoff);
    if (waited + wait > maxWaitMilliseconds) throw error;
    waited += wait;
    pausedUntil = steadyTime(clock) + wait;
  }

  return async function repeat<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const pause = pausedUntil - steadyTime(clock);
      if (pause > 0) await clock.sleep(pause, signal);
      const before = pausedUntil;
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof RegistryError) || !error.isTransient) throw error;
        if (error.status === undefined && attempt >= maxAttemptsWithoutResponse) throw error;
        // Concurrent requests that failed wait once.
        if (pausedUntil === before) pauseAll(error, attempt);
      }
    }
  };
}

function withQuery(address: string, query: Record<string, string>): URL {
  const url = new URL(address);
  // `searchParams` would encode the signature anew, and so invalidate it.
  url.search = `${url.search}${url.search === "" ? "?" : "&"}${new URLSearchParams(query)}`;
  return url;
}
