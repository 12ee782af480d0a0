import { asRecord } from "../../../service/http/json.ts";
import type { Fetch } from "../../../service/service.ts";
import { readAtMost } from "../../../streams.ts";

/** A request that changes nothing when it is made once more, and what of its answer a build depends on. */
export interface AskedQuestion {
  method: "GET" | "PATCH";
  /** From `/v1/` on, with the query. */
  path: string;
  /** JSON. */
  body?: string;
  answer: string;
}

/** A list of images that is longer is no answer to a question for one. */
const maxAnswerBytes = 1024 * 1024;

/**
 * The same fetch, of a service whose address is `base`. `note` gets each request once it is answered, in their order: `undefined`
 * for one that can't be made once more.
 */
export function recordQuestions(
  fetch: Fetch,
  base: string,
  note: (question: Promise<AskedQuestion | undefined>) => void,
): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    note(describeQuestion(input, init, base, response).catch(() => undefined));
    return response;
  };
}

async function describeQuestion(
  input: string | Request,
  init: RequestInit | undefined,
  base: string,
  response: Response,
): Promise<AskedQuestion | undefined> {
  const url = typeof input === "string" ? input : input.url;
  const path = url.startsWith(`${base}/`) ? url.slice(base.length) : "";
  const { method = "GET", body } = init ?? {};
  if (method === "GET" && path.startsWith("/v1/images?") && body === undefined) {
    const answer = await readAnswer(method, response.clone());
    return answer === undefined ? undefined : { method, path, answer };
  }
  if (method === "PATCH" && /^\/v1\/images\/[^/]+\/tag$/.test(path) && typeof body === "string")
    return response.ok ? { method, path, body, answer: "" } : undefined;
  return undefined;
}

/**
 * What an answer says of images: which there are, and under which tags. That a tag was set is said by the status. `undefined` for
 * an answer that makes no sense.
 */
export async function readAnswer(
  method: AskedQuestion["method"],
  response: Pick<Response, "ok" | "body">,
): Promise<string | undefined> {
  if (!response.ok) {
    await response.body?.cancel();
    return undefined;
  }
  const { bytes, isWhole } = await readAtMost(maxAnswerBytes, response.body ?? new ReadableStream());
  if (method === "PATCH") return "";
  const images = isWhole ? asRecord(JSON.parse(bytes.toString()))?.images : undefined;
  if (!Array.isArray(images)) return undefined;
  return JSON.stringify(
    images.map((image: unknown) => {
      const { uuid, id, tag } = asRecord(image) ?? {};
      return [uuid ?? id, tag];
    }),
  );
}
