/**
 * A number that tells one `POST /v1/instances` from others. It is added to `truncate_output_at`, in bytes: the one field that the
 * service's records can return and that the command never sees.
 */
import { sha256Of } from "../../sha256.ts";
import { asNumber, asRecord } from "../http/json.ts";
import type { InstanceRequest } from "../wire/instance.ts";

/** Bytes of each stream that a service keeps by default. */
const defaultLimit = 65_536;
/** Small enough that two streams in base64 stay below the maximum size of a response. */
const idCount = 2 ** 20;

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

/** Returns the limit in a record, or in an entry of the list of operations; `undefined` if there is none. */
export function outputLimitIn(record: unknown): number | undefined {
  const fields = asRecord(record);
  return asNumber(asRecord(fields?.metadata)?.truncate_output_at) ?? asNumber(fields?.truncate_output_at);
}
