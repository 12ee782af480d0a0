/** Turns an outcome into an error if the command did not run to its end. */
import { BoughError } from "../../errors.ts";
import { NotFoundError } from "../http/errors.ts";
import type { OperationOutcome } from "../service.ts";
import { meansMissing } from "./missing.ts";

/** Throws a BoughError if the command was stopped by its timeout, cancelled, or never started. */
export function requireEnd(
  { operation, status, error, timedOut }: OperationOutcome,
  timeoutSeconds: number,
): void {
  if (timedOut) {
    const time = `${timeoutSeconds} ${timeoutSeconds === 1 ? "second" : "seconds"}`;
    throw new BoughError(`the command was stopped after ${time} (operation ${operation})`, {
      hint: "Allow it more time with --timeout SECONDS.",
    });
  }
  if (status === "CANCELLED") throw new BoughError(`operation ${operation} was cancelled`);
  if (status === "FAILED")
    throw new BoughError(failedText(operation, error ?? "the service gives no reason"));
}

/** Throws a NotFoundError if the operation failed because the service lacks what its request names. */
export function refuseMissing({ status, error, operation }: OperationOutcome): void {
  if (status !== "FAILED" || error === undefined || !meansMissing(error)) return;
  throw new NotFoundError(failedText(operation, error));
}

function failedText(operation: string, reason: string): string {
  return `the command could not be run: ${reason} (operation ${operation})`;
}
