import { sha256Of } from "../../sha256.ts";
import type { InstanceRequest } from "../wire/instance.ts";

/**
 * A number that tells one `POST /v1/instances` from others. It is added to `truncate_output_at`, in bytes: the one field that the
 * service's records can return and that the command never sees. Small enough that two streams in base64 stay below the
 * maximum size of a response.
 */
const idCount = 2 ** 20;
/** Bytes of each stream that a service keeps by default. */
const defaultLimit = 65_536;

/** Returns an id that no other request is likely to have. `random` is in [0, 1). */
export function uniqueRequestId(random: number): number {
  return Math.floor(random * idCount);
}

/** Returns the same id each time for a step of a build, so that its requests are the same bytes. */
export function requestIdOfStep(key: string): number {
  return Number.parseInt(sha256Of(key).slice(0, 8), 16) % idCount;
}

export function withRequestId(request: InstanceRequest, requestId: number): InstanceRequest {
  return { ...request, truncate_output_at: (request.truncate_output_at ?? defaultLimit) + requestId };
}
