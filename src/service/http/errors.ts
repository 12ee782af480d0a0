import { BoughError, type BoughErrorOptions } from "../../errors.ts";
import { truncate, visible } from "../../visible.ts";
import { asRecord, asText } from "./json.ts";
import type { Failure } from "./retry.ts";

/** The thing that a call names does not exist, or no longer: 404, or another refusal that says so. */
export class NotFoundError extends BoughError {
  override readonly name = "NotFoundError";
}

/** The service has refused the call, for a reason that has no class of its own. */
export class StatusError extends BoughError {
  override readonly name = "StatusError";
  readonly status: number;

  constructor(status: number, message: string, options: BoughErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** A response that is not what its status promises: no JSON, or JSON without what the call needs. */
export class UnreadableAnswerError extends BoughError {
  override readonly name = "UnreadableAnswerError";
}

/** A redirect that is not followed: it would take the token or a body to a place that the user has not named. */
export class RedirectError extends BoughError {
  override readonly name = "RedirectError";
}

/** The service has redirected a body that can't be sent again as it is. The next attempt goes to the new place. */
export class MovedError extends BoughError {
  override readonly name = "MovedError";

  /** Where the call has to go. */
  readonly url: string;

  constructor(message: string, url: string, options?: BoughErrorOptions) {
    super(message, options);
    this.url = url;
  }
}

/** 411: the service takes no body of unknown length. */
export class LengthRequiredError extends BoughError {
  override readonly name = "LengthRequiredError";
}

/** A response is larger than bough accepts. */
export class ExcessiveAnswerError extends BoughError {
  override readonly name = "ExcessiveAnswerError";
}

/** 401 or 403: the service does not accept the token, or none was sent. */
export class RefusedTokenError extends BoughError {
  override readonly name = "RefusedTokenError";
}

/**
 * A body that can't be made again was used up by an attempt whose failure may be temporary. A call with a new body may succeed.
 */
export class SpentBodyError extends BoughError {
  override readonly name = "SpentBodyError";
  readonly failure: Failure;

  constructor(message: string, failure: Failure, options: BoughErrorOptions) {
    super(message, options);
    this.failure = failure;
  }
}

/** True if the service does not allow the call to this client, whatever it names. */
export function isForbidden(error: unknown): boolean {
  return error instanceof RefusedTokenError || (error instanceof StatusError && error.status === 403);
}

/** True if the service has answered, and not as such a call is answered. */
export function isRefusalOfCall(error: unknown): boolean {
  return [NotFoundError, StatusError, RefusedTokenError, RedirectError, UnreadableAnswerError].some(
    (kind) => error instanceof kind,
  );
}

/** The request may have been received, and sending it again could do its work twice. */
export class UnknownOutcomeError extends BoughError {
  override readonly name = "UnknownOutcomeError";
  /** True if the service has answered: it has certainly received the request. */
  readonly isAnswered: boolean;

  constructor(message: string, { isAnswered, ...options }: BoughErrorOptions & { isAnswered?: boolean }) {
    super(message, options);
    this.isAnswered = isAnswered === true;
  }
}

/** The service neither ends an operation within its time nor reports its outcome. */
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
/** A huge page is not scanned completely. */
const maxBodyLength = 20_000;

export function statusText(call: CallName, status: number, body: string): string {
  const words = statusWords(status);
  const message = serverMessage(body);
  const answered = `${callName(call)} answered ${words}`;
  if (message === undefined || words === `${status} ${message}`) return answered;
  // What the service lacks is for the person who runs it, and the engine's user is that person.
  return status === 501 ? `${message} (${answered})` : `${answered}: ${message}`;
}

/** Returns a status with its name: `404 Not Found`. */
export function statusWords(status: number): string {
  // Loaded only for a failure: loading takes longer than a request.
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
    // Not JSON: the text itself.
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
