import { BoughError } from "../../errors.ts";
import type { ErrorBody } from "../../service/wire/operation.ts";

/** An error that becomes the response; `message` reaches the client. */
export class RequestError extends BoughError {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** Calls `read`, and turns a BoughError that it throws into the response. */
export function withRequestErrors<Result>(read: () => Result, status = 400): Result {
  try {
    return read();
  } catch (error) {
    throw error instanceof BoughError && !(error instanceof RequestError)
      ? new RequestError(status, error.message)
      : error;
  }
}

export function jsonResponse(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return Response.json(value, { status, headers });
}

export function errorResponse(
  status: number,
  message: string,
  headers: Record<string, string> = {},
  reason: Pick<ErrorBody, "reason"> = {},
): Response {
  const body: ErrorBody = { error: message, status, ...reason };
  return jsonResponse(body, status, headers);
}

/** Returns the response for an operation that was started, with fields of its request. */
export function respondStarted(uuid: string, request: Record<string, unknown> = {}): Response {
  return jsonResponse({ ...request, uuid, status: "EXECUTING" }, 201, { Location: `/v1/operations/${uuid}` });
}

/** A header that makes proxies (nginx and those that follow it) pass each part of a response on at once. */
export const unbuffered = { "X-Accel-Buffering": "no" };
