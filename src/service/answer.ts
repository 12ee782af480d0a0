/** What an answer comes to: something to go on with, or a failure to decide about. Pure. */
import { BoughError } from "../errors.ts";
import { NotFoundError, RefusedTokenError } from "./errors.ts";
import { type CallName, nameOf, printable, statusText } from "./failure-text.ts";
import type { Failure } from "./retry.ts";

export interface Answer {
  status: number;
  headers: Headers;
  /** The parsed JSON, or a Uint8Array; `undefined` for an empty body and for the statuses that the caller handles. */
  body: unknown;
}

export type Result = { answer: Answer } | { failure: Failure; error: BoughError };

export interface Expectation {
  call: CallName;
  handles: readonly number[];
  expects: "json" | "bytes";
  hasToken: boolean;
  redact(text: string): string;
}

/** `data` is the body as a string or an ArrayBuffer; nothing for an empty one. */
export function readAnswer(
  expectation: Expectation,
  status: number,
  headers: Headers,
  data: unknown,
): Result {
  const { call, handles, expects, redact } = expectation;
  if (handles.includes(status)) return { answer: { status, headers, body: undefined } };
  if (status < 200 || status >= 300) {
    const failure: Failure = { kind: "status", status, retryAfter: headers.get("retry-after") };
    const message = redact(statusText(call, status, textOf(data)));
    return { failure, error: statusError(status, message, expectation.hasToken) };
  }
  if (expects === "bytes") {
    return { answer: { status, headers, body: new Uint8Array(data instanceof ArrayBuffer ? data : []) } };
  }
  const text = textOf(data);
  if (text.trim() === "" && call.method !== "GET") return { answer: { status, headers, body: undefined } };
  try {
    return { answer: { status, headers, body: JSON.parse(text) } };
  } catch {
    // Where the Location says what was made, the answer can do without a body.
    if (headers.get("location") !== null) return { answer: { status, headers, body: undefined } };
    const shown =
      text.trim() === "" ? "nothing" : `something that is not JSON: ${printable(text.slice(0, 80))}`;
    const error = new BoughError(redact(`${nameOf(call)} answered ${status} with ${shown}`), {
      hint: "Is this address an image service's?",
    });
    return { failure: { kind: "malformed" }, error };
  }
}

function statusError(status: number, message: string, hasToken: boolean): BoughError {
  if (status === 404) return new NotFoundError(message);
  if (status !== 401 && status !== 403) return new BoughError(message);
  const hint = hasToken
    ? "The token that was sent is not accepted for this: give another with --token, CONTREE_TOKEN or a profile, or check the project."
    : "No token was sent: give one with --token, CONTREE_TOKEN or a profile.";
  return new RefusedTokenError(message, { hint });
}

function textOf(data: unknown): string {
  if (typeof data === "string") return data;
  return data instanceof ArrayBuffer ? new TextDecoder().decode(data) : "";
}
