import { BoughError, type BoughErrorOptions } from "../../errors.ts";
import { truncate, visible } from "../../visible.ts";
import { asRecord, asText } from "./json.ts";
import type { AttemptFailure } from "./retry.ts";

/** Thrown if something that a call names does not exist: for 404, or another error status with such a message. */
export class NotFoundError extends BoughError {
  override readonly name = "NotFoundError";
}

/** Thrown for an error status that has no class of its own. */
export class StatusError extends BoughError {
  override readonly name = "StatusError";
  readonly status: number;

  constructor(status: number, message: string, options: BoughErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** Thrown for a response that is not JSON, or lacks what the call needs. */
export class UnreadableResponseError extends BoughError {
  override readonly name = "UnreadableResponseError";
}

/** Thrown for a redirect that is not followed: it would take the token or a body to an address that the user has not given. */
export class RedirectError extends BoughError {
  override readonly name = "RedirectError";
}

/** Thrown if the service redirects a body that can't be sent again as it is. The next attempt goes to the new address. */
export class MovedError extends BoughError {
  override readonly name = "MovedError";

  /** The address of the next attempt. */
  readonly url: string;

  constructor(message: string, url: string, options?: BoughErrorOptions) {
    super(message, options);
    this.url = url;
  }
}

/** Thrown for 411: the service accepts no body of unknown length. */
export class LengthRequiredError extends BoughError {
  override readonly name = "LengthRequiredError";
}

/** Thrown for a response that is larger than bough accepts. */
export class ExcessiveResponseError extends BoughError {
  override readonly name = "ExcessiveResponseError";
}

/** Thrown for 401 and 403: the service does not accept the token, or none was sent. */
export class RefusedTokenError extends BoughError {
  override readonly name = "RefusedTokenError";
}

/**
 * Thrown if an attempt has used up a body that can't be made again. Its failure may be temporary, so a call with a new body may succeed.
 */
export class SpentBodyError extends BoughError {
  override readonly name = "SpentBodyError";
  readonly failure: AttemptFailure;

  constructor(message: string, failure: AttemptFailure, options: BoughErrorOptions) {
    super(message, options);
    this.failure = failure;
  }
}

/** Returns true if the service does not allow the call to this client, whatever its arguments. */
export function isForbidden(error: unknown): boolean {
  return error instanceof RefusedTokenError || (error instanceof StatusError && error.status === 403);
}

/** Returns true if the service has rejected the call, or its response is not one to such a call. */
export function isRefusalOfCall(error: unknown): boolean {
  return [NotFoundError, StatusError, RefusedTokenError, RedirectError, UnreadableResponseError].some(
    (kind) => error instanceof kind,
  );
}

/** Thrown if the service may have received a request, and a repeat could do its work twice. */
export class UnknownOutcomeError extends BoughError {
  override readonly name = "UnknownOutcomeError";
  /** True if the service has responded, so that it has certainly received the request. */
  readonly isAnswered: boolean;

  constructor(message: string, { isAnswered, ...options }: BoughErrorOptions & { isAnswered?: boolean }) {
    super(message, options);
    this.isAnswered = isAnswered === true;
  }
}

/** Thrown if the service neither ends an operation within its time nor reports its outcome. */
export class OverdueError extends BoughError {
  override readonly name = "OverdueError";
}

export interface CallName {
  method: string;
  url: string;
  /** The address as shown to people. */
  shown: string;
}

const maxServerMessageLength = 500;
/** The number of characters that are scanned for a message. */
const maxBodyLength = 20_000;

export function statusText(call: CallName, status: number, body: string): string {
  const words = statusName(status);
  const message = serverMessage(body);
  const responded = `${callName(call)} responded with ${words}`;
  if (message === undefined || words === `${status} ${message}`) return responded;
  // The message says what the machine of the service lacks, and the engine's user is the one who can install it.
  return status === 501 ? `${message} (${responded})` : `${responded}: ${message}`;
}

/** Returns a status with its name: `404 Not Found`. */
export function statusName(status: number): string {
  // node:http is loaded only for a failure, since that takes longer than a request.
  const name = process.getBuiltinModule("node:http").STATUS_CODES[status];
  return name === undefined ? String(status) : `${status} ${name}`;
}

export function callName(call: CallName): string {
  return `${call.method} ${call.shown}`;
}

/** Returns the message in an error's body: `{"error": ...}`, a proxy's HTML page or plain text. Safe to print. */
export function serverMessage(body: string): string | undefined {
  const message = printable(messageIn(body.slice(0, maxBodyLength)));
  if (message === "") return undefined;
  return truncate(message, maxServerMessageLength);
}

function messageIn(body: string): string {
  try {
    const record = asRecord(JSON.parse(body));
    const nested = asRecord(record?.error);
    const message =
      asText(record?.error) ?? asText(nested?.message) ?? asText(record?.message) ?? asText(record?.detail);
    if (message !== undefined) return message;
  } catch {
    // The body is not JSON.
  }
  return /^\s*<(!doctype|html|\?xml)/i.test(body) ? textOfPage(body) : body;
}

/** Returns a page's title, else its text. */
function textOfPage(page: string): string {
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(page)?.[1]?.trim();
  if (title !== undefined && title !== "") return title;
  return page.replace(/<(style|script)[\s\S]*?<\/\1>/gi, " ").replace(/<[^>]*>/g, " ");
}

/** Returns one line without control characters: a server's text must not control the terminal. */
export function printable(text: string): string {
  return visible(text.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, " ").trim());
}
