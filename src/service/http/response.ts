/** Turns a received response into one that the caller can use, or into a failure, which may be retried. Pure. */
import type { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { meansMissing } from "../operations/outcome.ts";
import { diskFailing } from "../wire/operation.ts";
import { fileIdIn } from "../wire/reader/ids.ts";
import { listIn as readList } from "../wire/reader/lists.ts";
import { ExcessiveJsonError, parseBoundedJson } from "./bounded-body.ts";
import { proxyHint } from "./connection.ts";
import {
  type CallName,
  callName,
  ExcessiveResponseError,
  LengthRequiredError,
  NotFoundError,
  printable,
  RefusedTokenError,
  StatusError,
  serverMessage,
  statusText,
  UnreadableResponseError,
} from "./errors.ts";
import { asId, asRecord, parseRecord } from "./json.ts";
import { type AttemptFailure, retryAfterIn } from "./retry.ts";

export interface ServiceResponse {
  status: number;
  headers: Headers;
  /**
   * The parsed JSON, a Uint8Array, or a ReadableStream; `undefined` for an empty body and for the statuses that the
   * caller handles.
   */
  body: unknown;
  /** The service's message with a status that the caller handles. */
  refusal?: string | undefined;
}

/** A caller's requirement for a response. A response that does not meet it counts as malformed, like one that is not JSON. */
export interface Requirement {
  /** The words for a message, such as `the file's uuid`. */
  what: string;
  isMet(response: ServiceResponse): boolean;
}

export type AttemptResult = { answer: ServiceResponse } | { failure: AttemptFailure; error: BoughError };

interface Expectation {
  call: CallName;
  handles: readonly number[];
  /** Error statuses whose body may be what the call needs. */
  accepts?: readonly number[] | undefined;
  expects: "json" | "bytes" | "stream";
  requires: Requirement | undefined;
  hasToken: boolean;
  redact(text: string): string;
}

/** A received response, with its body, the beginning of an error's body, or the limit that the body exceeds. */
export interface Received {
  status: number;
  headers: Headers;
  data: Uint8Array | ReadableStream<Uint8Array> | { moreThan: number };
}

export function readResponse(expectation: Expectation, { status, headers, data }: Received): AttemptResult {
  const { call, handles, expects, redact } = expectation;
  if (expectation.accepts?.includes(status) === true) {
    const result = readJson(expectation, status, headers, textOf(data));
    if ("answer" in result) return result;
  }
  if (handles.includes(status))
    return { answer: { status, headers, body: undefined, refusal: serverMessage(textOf(data)) } };
  // `See other` says where the result of a request is, as `Location` does with 201.
  if (status === 303 && call.method !== "GET") return readJson(expectation, status, headers, "");
  if (status < 200 || status >= 300) {
    const text = textOf(data);
    const record = parseRecord(text);
    const isOwn = status === 500 && record !== undefined;
    const failure: AttemptFailure = { kind: "status", status, retryAfter: retryAfterIn(headers), isOwn };
    const message = redact(statusText(call, status, text));
    const isDiskFailing = record?.reason === diskFailing;
    return { failure, error: statusError(failure, { message, isDiskFailing }, expectation) };
  }
  if ("moreThan" in data) return excessive(expectation, status, `more than ${data.moreThan / 2 ** 20} MiB`);
  return expects === "json"
    ? readJson(expectation, status, headers, textOf(data))
    : { answer: { status, headers, body: data } };
}

function readJson(expectation: Expectation, status: number, headers: Headers, text: string): AttemptResult {
  const { call, requires } = expectation;
  const isEmpty = text.trim() === "";
  const parsed = parse(text);
  if (parsed instanceof ExcessiveJsonError) return excessive(expectation, status, parsed.message);
  // A response needs no body if its Location header says what was made, or if it only says that there is none yet.
  const needsNone = call.method !== "GET" || emptyStatuses.includes(status);
  const body = parsed ?? (headers.has("location") || (isEmpty && needsNone) ? {} : undefined);
  if (body === undefined) {
    const shown = isEmpty ? "an empty body" : `a body that is not JSON: ${shownResponse(text)}`;
    // A text that begins like JSON or HTML is incomplete, or comes from a proxy.
    const isDamaged = isEmpty || /^\s*[{["<]/.test(text);
    return unreadable(expectation, `${status} and ${shown}`, isDamaged ? "malformed" : "incomplete");
  }
  const answer = { status, headers, body: body.value };
  if (requires === undefined || requires.isMet(answer)) return { answer };
  return unreadable(expectation, `${status} without ${requires.what}: ${shownResponse(text)}`, "incomplete");
}

/** The statuses `Accepted` and `No Content`. */
const emptyStatuses = [202, 204];

const maxShownCharacters = 500;

/** Returns a response's text in one line, for a message. */
function shownResponse(text: string): string {
  return text.trim() === "" ? "an empty body" : printable(text.slice(0, maxShownCharacters));
}

function unreadable(
  { call, redact }: Expectation,
  what: string,
  kind: "malformed" | "incomplete",
): AttemptResult {
  const error = new UnreadableResponseError(redact(`${callName(call)} responded with ${what}`), {
    hint: "Is this the address of an image service?",
  });
  return { failure: { kind }, error };
}

/** Returns the failure of a response that is too large. A repeat would receive the same again. */
function excessive({ call, redact }: Expectation, status: number, what: string): AttemptResult {
  const error = new ExcessiveResponseError(redact(`${callName(call)} responded with ${status} and ${what}`), {
    hint: "bough does not accept larger responses. Is this the address of an image service?",
  });
  return { failure: { kind: "excessive" }, error };
}

function parse(text: string): { value?: unknown } | ExcessiveJsonError | undefined {
  try {
    return { value: parseBoundedJson(text) };
  } catch (error) {
    return error instanceof ExcessiveJsonError ? error : undefined;
  }
}

function statusError(
  { status, retryAfter }: Extract<AttemptFailure, { kind: "status" }>,
  { message, isDiskFailing }: { message: string; isDiskFailing: boolean },
  { hasToken, redact }: Expectation,
): BoughError {
  if (isMissing(status, message)) return new NotFoundError(message);
  if (status === 401 || status === 403) return new RefusedTokenError(message, { hint: tokenHint(hasToken) });
  if (status === 411) return new LengthRequiredError(message);
  // The engine's message says what to do about a disk that fails, which is not full.
  const hint = isDiskFailing ? undefined : hintFor(status, retryAfter, redact);
  return new StatusError(status, message, { hint });
}

function isMissing(status: number, message: string): boolean {
  return status === 404 || status === 410 || ([400, 409, 422, 424].includes(status) && meansMissing(message));
}

function tokenHint(hasToken: boolean): Message {
  return hasToken
    ? wording`The token that was sent is not accepted for this: give another with ${{ option: "token" }}, CONTREE_TOKEN or a profile, or check the project.`
    : wording`No token was sent: give one with ${{ option: "token" }}, CONTREE_TOKEN or a profile.`;
}

function hintFor(
  status: number,
  retryAfter: string | null,
  redact: (text: string) => string,
): Message | undefined {
  if (status === 407) return proxyHint;
  if (status === 413)
    return "It is larger than the service accepts: exclude it with an ignore rule, or make it smaller.";
  if (status === 425 || status === 429) {
    const when =
      retryAfter === null
        ? "later"
        : `when it allows it again (Retry-After: ${redact(printable(retryAfter))})`;
    return `The service accepts no more requests at the moment: run the command again ${when}.`;
  }
  if (status === 507)
    return wording`Free space on its disk${wording`; on the embedded engine, run ${{ command: "engine prune" }}`}.`;
  // The response says what the service lacks.
  if (status === 501) return undefined;
  return status >= 500
    ? "This is an error of the service, not of the request: run the command again later."
    : undefined;
}

function textOf(data: Received["data"]): string {
  return data instanceof Uint8Array ? new TextDecoder().decode(data) : "";
}

export const anObject: Requirement = {
  what: "a JSON object",
  isMet: ({ body }) => asRecord(body) !== undefined,
};

/**
 * Requires `{<name>: [...]}`, the list alone, or one below another usual key. Some services return null for an empty list, or `{}` if
 * its field is `optional` in the API.
 */
export function aList(name: string, { optional = false } = {}): Requirement {
  return {
    what: `a list of ${name}`,
    isMet({ body }) {
      const record = asRecord(body);
      const isLeftOut = optional && record !== undefined && Object.keys(record).length === 0;
      return isLeftOut || readList(body, name) !== undefined;
    },
  };
}

/** The limit of listed items: a longer list would fill this machine's memory, and nobody would read it. */
export const maxListed = 200_000;

export function listIn(body: unknown, name: string): unknown[] {
  return readList(body, name) ?? [];
}

export const aFileId: Requirement = {
  what: "the file's uuid",
  isMet: (answer) => storedIdIn(answer) !== undefined,
};

/** Returns the id of a stored file: from the body, or the last segment of `Location`. */
export function storedIdIn({ body, headers }: Pick<ServiceResponse, "body" | "headers">): string | undefined {
  const last = headers
    .get("location")
    ?.split(/[?#]/)[0]
    ?.split("/")
    .findLast((part) => part !== "");
  return fileIdIn(body) ?? asId(last);
}
