import { BoughError } from "../errors.ts";

/** The service answered 404: what the call names is not, or no longer, there. */
export class NotFoundError extends BoughError {
  override readonly name = "NotFoundError";
}

/** The request may have been received, and sending it again could do its work twice. */
export class UnknownOutcomeError extends BoughError {
  override readonly name = "UnknownOutcomeError";
}
