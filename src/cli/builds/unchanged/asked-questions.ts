import type { Clock } from "../../../clock.ts";
import type { decompressedBody } from "../../../service/http/decompression.ts";
import type { Fetch } from "../../../service/service.ts";
import { sha256Of } from "../../../sha256.ts";
import { readAtMost } from "../../../streams.ts";

/** A request that changes nothing when it is made once more. */
export interface AskedQuestion {
  method: "GET" | "PATCH" | "POST";
  /** The path from `/v1/` on, with the query. */
  path: string;
  /** JSON. */
  body?: string;
  /** A digest of what came; that a tag was set is said by the status alone. */
  answer: string;
}

/** A service that takes longer is not asked once more before a build: see `areAnsweredAlike`, which waits twice as long. */
const patienceMilliseconds = 500;
/** What is longer is not an answer to a question for an image. */
const maxAnswerBytes = 1024 * 1024;

/**
 * The same fetch, of a service whose address is `base`. `note` gets each request once it is answered, in their order: `undefined`
 * for one that can't be made once more, or takes long.
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

/** Which images there are, what the service can do, the image with a configuration, and a tag that is set. */
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

/** It has passed by on its way to who takes the compression off. */
async function bodyOf(response: Passing): Promise<Response["body"]> {
  if (response.headers.get("content-encoding") === null) return response.body;
  const { decompressedBody } = await import("../../../service/http/decompression.ts");
  return decompressedBody(response);
}

/** `undefined` for an error, and for more than an answer has. */
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
