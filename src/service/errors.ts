import { BoughError } from "../errors.ts";

/** The service answered 404: what the call names is not, or no longer, there. */
export class NotFoundError extends BoughError {
  override readonly name = "NotFoundError";
}

/** 401 or 403: the service does not take the token, or there was none. */
export class RefusedTokenError extends BoughError {
  override readonly name = "RefusedTokenError";
}

/** The request may have been received, and sending it again could do its work twice. */
export class UnknownOutcomeError extends BoughError {
  override readonly name = "UnknownOutcomeError";
}
