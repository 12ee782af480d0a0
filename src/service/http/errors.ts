import { BoughError, type BoughErrorOptions } from "../../errors.ts";
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

/** 411: the service takes no body of unknown length. */
export class LengthRequiredError extends BoughError {
  override readonly name = "LengthRequiredError";
}

/** 401 or 403: the service does not accept the token, or none was sent. */
/** A response is larger than bough accepts. */
export class ExcessiveAnswerError extends BoughError {
  override readonly name = "ExcessiveAnswerError";
}

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

/** The request may have been received, and sending it again could do its work twice. */
export class UnknownOutcomeError extends BoughError {
  override readonly name = "UnknownOutcomeError";
}

/** The service neither ends an operation within its time nor reports its outcome. */
export class OverdueError extends BoughError {
  override readonly name = "OverdueError";
}
