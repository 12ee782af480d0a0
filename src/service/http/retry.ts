/**
 * Decides when to send a request again, as a pure function. The rules are those of the wire protocol: 425, 429 and 503 mean
 * "refused before any processing", and every call may be repeated. Other 5xx statuses and connection faults allow it only for a
 * call that may be processed twice.
 */

/** The failure of one attempt. */
export type AttemptFailure =
  /** `isOwn`: the body is the service's, not a proxy's, so the service has received the request. */
  | { kind: "status"; status: number; retryAfter: string | null; isOwn?: boolean }
  /** `received: false`: the request provably never reached the service (connection refused, unknown host). */
  | { kind: "connection"; received: boolean; permanent: boolean }
  /** The body is not what the status promises: broken JSON, a proxy's page. */
  | { kind: "malformed" }
  /** The body is complete, but lacks what the call needs. */
  | { kind: "incomplete" }
  /** Redirected to another path of the service, to which the body has to be sent again. */
  | { kind: "moved"; url: string }
  /** The response is too large to read. */
  | { kind: "excessive" };

export interface Attempt {
  /** 1 for the first. */
  number: number;
  /** True if the call may be processed twice without harm. */
  repeatable: boolean;
  /** True if the service has responded before: it exists, so a fault is more likely to be temporary. */
  answeredBefore: boolean;
  failure: AttemptFailure;
  /** True if the service does not know yet what it has just made. */
  isTooNew?: boolean;
  elapsedMilliseconds: number;
  /** True if the caller can do without the call, so that no wait is long. */
  isOptional?: boolean;
  /** True if a response means that the call has started something, so that it is not repeated. */
  isStart?: boolean;
}

type Decision = { action: "wait"; milliseconds: number } | { action: "give up" };

const firstWaitMilliseconds = 200;
const maxWaitMilliseconds = 10_000;
/** People wait this long for a service that restarts. Waits that the service asks for may take longer. */
const faultBudgetMilliseconds = 30_000;
/** The budget for 500, which more often means a permanent defect than a restart. */
const defectBudgetMilliseconds = 15_000;
/** The budget before the first response: a mistyped address should not take a minute to be noticed. */
const firstContactBudgetMilliseconds = 5_000;
/** The budget for rate limits, which take longer than faults, but certainly end. */
const refusalBudgetMilliseconds = 300_000;
const malformedAttempts = 3;
/** The attempts at an optional call: a defect is permanent, a busy service may have time soon. */
const optionalAttempts = { defect: 3, refusal: 4 };
const maxOptionalWaitMilliseconds = 20_000;
/** The limit of redirects to another path. */
const maxMoves = 5;
/** The maximum wait for a new resource: replicas of a database are late by some 100 ms. */
const maxTooNewWaitMilliseconds = 1000;

/** @param random a number in [0, 1) */
export function decide(attempt: Attempt, now: number, random: number): Decision {
  const { failure } = attempt;
  const decision = decideFor(attempt, now, random);
  if (attempt.isOptional !== true || decision.action === "give up" || !isAnswered(failure)) return decision;
  const isRefused = failure.kind === "status" && isRefusal(failure.status);
  const maxAttempts = isRefused ? optionalAttempts.refusal : optionalAttempts.defect;
  // A service without the call may respond to it all the same.
  if (failure.kind === "incomplete") return giveUp;
  const isLong = attempt.number >= maxAttempts || decision.milliseconds > maxOptionalWaitMilliseconds;
  return isLong ? giveUp : decision;
}

function decideFor(attempt: Attempt, now: number, random: number): Decision {
  const { failure } = attempt;
  switch (failure.kind) {
    case "status": {
      if (attempt.isTooNew === true)
        return waiting(Math.min(backoff(attempt.number, random), maxTooNewWaitMilliseconds));
      const refused = isRefusal(failure.status);
      if (!refused && !(attempt.repeatable && isFault(failure.status))) return giveUp;
      // A server that repeatedly asks for no wait must not get a thousand requests.
      const asked = parseRetryAfter(failure.retryAfter, now) ?? 0;
      const wait = Math.max(asked, backoff(attempt.number, random));
      return within(statusBudget(failure.status, asked), attempt, wait);
    }
    case "connection": {
      if (failure.permanent || (failure.received && !attempt.repeatable)) return giveUp;
      const wait = backoff(attempt.number, random);
      if (!attempt.answeredBefore) return within(firstContactBudgetMilliseconds, attempt, wait);
      // There is a second attempt, however long the first one has waited.
      return attempt.number === 1 ? waiting(wait) : within(faultBudgetMilliseconds, attempt, wait);
    }
    case "malformed":
    case "incomplete":
      if (!attempt.repeatable || attempt.number >= malformedAttempts) return giveUp;
      if (failure.kind === "incomplete" && attempt.isStart === true) return giveUp;
      return within(faultBudgetMilliseconds, attempt, backoff(attempt.number, random));
    case "moved":
      return attempt.number > maxMoves ? giveUp : waiting(0);
    case "excessive":
      return giveUp;
  }
}

/** Returns false if the request has not reached the service, as no other call would. */
export function isAnswered(failure: AttemptFailure): boolean {
  return failure.kind !== "connection" || failure.received;
}

/** Returns true for statuses that reject a request before any processing. */
export function isRefusal(status: number): boolean {
  return status === 425 || status === 429 || status === 503;
}

/** Returns true if a call that has failed for good may have been processed anyway. */
export function isOutcomeUnknown(failure: AttemptFailure): boolean {
  switch (failure.kind) {
    case "status":
      return !isRefusal(failure.status) && isFault(failure.status);
    case "connection":
      return failure.received;
    case "malformed":
    case "incomplete":
    case "excessive":
      return true;
    case "moved":
      return false;
  }
}

/** Returns true if the response is the service's own, and not a proxy's: the service has received the call. */
export function isOwnResponse(failure: AttemptFailure): boolean {
  return failure.kind === "status" ? failure.isOwn === true : isUnreadable(failure);
}

function isUnreadable({ kind }: AttemptFailure): boolean {
  return kind === "malformed" || kind === "incomplete" || kind === "excessive";
}

/** Returns the value of `Retry-After`. A date becomes seconds by the response's own `Date`: this machine's clock may differ. */
export function retryAfterIn(headers: Headers): string | null {
  const value = headers.get("retry-after");
  const [until, sent] = [parseDate(value), parseDate(headers.get("date"))];
  return Number.isNaN(until - sent) ? value : String(Math.max(0, until - sent) / 1000);
}

/** Returns `Retry-After` in milliseconds from `now`: seconds, or an HTTP date (RFC 9110, 10.2.3). */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000);
  const date = parseDate(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Returns NaN for anything but an HTTP date. Date.parse alone takes "-3" as a year. */
function parseDate(text: string | null): number {
  return text !== null && /^\s*[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
}

/**
 * True for 408 and 5xx, except for statuses of what this service will never do, and for a full disk: the call has not been
 * performed, and waiting does not empty the disk (RFC 4918, 11.5).
 */
function isFault(status: number): boolean {
  return status === 408 || (status >= 500 && ![501, 505, 507].includes(status));
}

function statusBudget(status: number, asked: number): number {
  // A service that is down also responds with 503, and is not worth minutes of waiting, unless it says when it will be back.
  if (isRefusal(status) && status !== 503) return refusalBudgetMilliseconds;
  if (status === 503) return Math.min(Math.max(asked, faultBudgetMilliseconds), refusalBudgetMilliseconds);
  return status === 500 ? defectBudgetMilliseconds : faultBudgetMilliseconds;
}

const giveUp: Decision = { action: "give up" };

function within(budget: number, attempt: Attempt, wait: number): Decision {
  return attempt.elapsedMilliseconds + wait > budget ? giveUp : waiting(wait);
}

function waiting(milliseconds: number): Decision {
  return { action: "wait", milliseconds };
}

/** Doubles up to the maximum wait. The jitter takes away up to half, so that many clients don't come back together. */
function backoff(attempt: number, random: number): number {
  const full = Math.min(maxWaitMilliseconds, firstWaitMilliseconds * 2 ** (attempt - 1));
  return Math.round(full * (1 - random / 2));
}
