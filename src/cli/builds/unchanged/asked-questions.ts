import type { Clock } from "../../../clock.ts";
import type { decompressedBody } from "../../../service/http/decompression.ts";
import type { Fetch } from "../../../service/service.ts";
import { sha256Of } from "../../../sha256.ts";
import { readAtMost } from "../../../streams.ts";

/** A request that can be repeated without changing anything. */
export interface AskedQuestion {
  method: "GET" | "PATCH" | "POST";
  /** The path from `/v1/` on, with the query. */
  path: string;
  /** JSON. */
  body?: string;
  /** A digest of the response's body. For PATCH, which sets a tag, only the status counts: it is the digest of an empty body. */
  answer: string;
}

/** The maximum duration of a request that is repeated before the next build. `areAnsweredAlike` then waits twice as long. */
const patienceMilliseconds = 500;
/** Valid responses to these requests are shorter. */
const maxAnswerBytes = 1024 * 1024;

/**
 * Wraps the fetch of the service at `base`. Calls `note` after each response, in order, with the request; with `undefined` if the
 * request can't be repeated or was slow.
 */
export function recordQuestions(
  fetch: Fetch,
  { base, clock }: { base: string; clock: Pick<Clock, "now"> },
  note: (question: Promise<AskedQuestion | undefined> | undefined) => void,
): Fetch {
  return async (input, init) => {
    const sentAt = clock.now();
    const response = await fetch(input, init);
    const isSlow = clock.now() - sentAt > patienceMilliseconds;
    const asked = isSlow ? undefined : questionOf(input, init, base);
    note(asked === undefined ? undefined : withAnswer(asked, response.clone()));
    return response;
  };
}

type Question = Omit<AskedQuestion, "answer">;

/** Requests that list images, read the service's capabilities, make the image with a configuration, and set a tag. */
const repeatable: Readonly<Record<AskedQuestion["method"], RegExp>> = {
  GET: /^\/v1\/(images\?|whoami$)/,
  POST: /^\/v1\/images\/[^/]+\/config$/,
  PATCH: /^\/v1\/images\/[^/]+\/tag$/,
};

function questionOf(
  input: string | Request,
  init: RequestInit | undefined,
  base: string,
): Question | undefined {
  const url = typeof input === "string" ? input : input.url;
  const path = url.startsWith(`${base}/`) ? url.slice(base.length) : "";
  const { method = "GET", body } = init ?? {};
  if (!isKnown(method) || !repeatable[method].test(path)) return undefined;
  if (method === "GET") return { method, path };
  return typeof body === "string" ? { method, path, body } : undefined;
}

function isKnown(method: string): method is AskedQuestion["method"] {
  return Object.hasOwn(repeatable, method);
}

async function withAnswer(
  question: Question,
  response: Passing & { ok: boolean },
): Promise<AskedQuestion | undefined> {
  try {
    const answer = await digestAnswer(question, { ok: response.ok, body: await bodyOf(response) });
    return answer === undefined ? undefined : { ...question, answer };
  } catch {
    return undefined;
  }
}

type Passing = Parameters<typeof decompressedBody>[0];

/** Returns the decompressed body. The response is a copy of one that its receiver has yet to decompress. */
async function bodyOf(response: Passing): Promise<Response["body"]> {
  if (response.headers.get("content-encoding") === null) return response.body;
  const { decompressedBody } = await import("../../../service/http/decompression.ts");
  return decompressedBody(response);
}

/** Returns `undefined` for an error status, and for a body that is too long. */
export async function digestAnswer(
  { method }: Question,
  response: Pick<Response, "ok" | "body">,
): Promise<string | undefined> {
  if (!response.ok) {
    await response.body?.cancel();
    return undefined;
  }
  const { bytes, isWhole } = await readAtMost(maxAnswerBytes, response.body ?? new ReadableStream());
  return isWhole ? sha256Of(method === "PATCH" ? "" : bytes) : undefined;
}
