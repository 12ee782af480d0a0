import type { Clock } from "../../../clock.ts";
import type { decompressedBody } from "../../../service/http/decompression.ts";
import type { Fetch } from "../../../service/service.ts";
import { sha256Of } from "../../../sha256.ts";
import { readAtMost } from "../../../streams.ts";

/** A request that can be repeated without changing anything. */
export interface RecordedRequest {
  method: "GET" | "PATCH" | "POST";
  /** The path from `/v1/` on, with the query. */
  path: string;
  /** JSON. */
  body?: string;
  /** A digest of the response's body. For PATCH, which sets a tag, only the status counts: it is the digest of an empty body. */
  responseDigest: string;
}

/** The maximum duration of a request that is repeated before the next build. `responsesMatch` then waits twice as long. */
const maxRequestMilliseconds = 500;
/** Valid responses to these requests are shorter. */
const maxResponseBytes = 1024 * 1024;

/**
 * Wraps the fetch of the service at `base`. Calls `note` after each response, in order, with the request; with `undefined` if the
 * request can't be repeated or was slow.
 */
export function recordRequests(
  fetch: Fetch,
  { base, clock }: { base: string; clock: Pick<Clock, "now"> },
  note: (request: Promise<RecordedRequest | undefined> | undefined) => void,
): Fetch {
  return async (input, init) => {
    const sentAt = clock.now();
    const response = await fetch(input, init);
    const isSlow = clock.now() - sentAt > maxRequestMilliseconds;
    const request = isSlow ? undefined : repeatableRequest(input, init, base);
    note(request === undefined ? undefined : withResponse(request, response.clone()));
    return response;
  };
}

type RepeatableRequest = Omit<RecordedRequest, "responseDigest">;

/** Requests that list images, read the service's capabilities, make the image with a configuration, and set a tag. */
const repeatable: Readonly<Record<RecordedRequest["method"], RegExp>> = {
  GET: /^\/v1\/(images\?|whoami$)/,
  POST: /^\/v1\/images\/[^/]+\/config$/,
  PATCH: /^\/v1\/images\/[^/]+\/tag$/,
};

function repeatableRequest(
  input: string | Request,
  init: RequestInit | undefined,
  base: string,
): RepeatableRequest | undefined {
  const url = typeof input === "string" ? input : input.url;
  const path = url.startsWith(`${base}/`) ? url.slice(base.length) : "";
  const { method = "GET", body } = init ?? {};
  if (!isKnown(method) || !repeatable[method].test(path)) return undefined;
  if (method === "GET") return { method, path };
  return typeof body === "string" ? { method, path, body } : undefined;
}

function isKnown(method: string): method is RecordedRequest["method"] {
  return Object.hasOwn(repeatable, method);
}

async function withResponse(
  request: RepeatableRequest,
  response: FetchedResponse & { ok: boolean },
): Promise<RecordedRequest | undefined> {
  try {
    const responseDigest = await digestResponse(request, { ok: response.ok, body: await bodyOf(response) });
    return responseDigest === undefined ? undefined : { ...request, responseDigest };
  } catch {
    return undefined;
  }
}

type FetchedResponse = Parameters<typeof decompressedBody>[0];

/** Returns the decompressed body. The response is a copy of one that its receiver has yet to decompress. */
async function bodyOf(response: FetchedResponse): Promise<Response["body"]> {
  if (response.headers.get("content-encoding") === null) return response.body;
  const { decompressedBody } = await import("../../../service/http/decompression.ts");
  return decompressedBody(response);
}

/** Returns `undefined` for an error status, and for a body that is too long. */
export async function digestResponse(
  { method }: RepeatableRequest,
  response: Pick<Response, "ok" | "body">,
): Promise<string | undefined> {
  if (!response.ok) {
    await response.body?.cancel();
    return undefined;
  }
  // A response of status 204 has no body.
  if (response.body === null) return sha256Of("");
  const { bytes, isWhole } = await readAtMost(maxResponseBytes, response.body);
  return isWhole ? sha256Of(method === "PATCH" ? "" : bytes) : undefined;
}
