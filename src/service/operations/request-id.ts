/**
 * A number that tells one `POST /v1/instances` from every other. It travels in `truncate_output_at`, as so many bytes
 * more than are asked for: the one field that the service's records can give back and that the command never sees.
 */
import { asNumber, asRecord } from "../http/json.ts";
import type { InstanceRequest } from "../wire/instance.ts";

/** Bytes of each stream that a service keeps when the request does not say. */
const defaultLimit = 65_536;
/** Few enough that what a service keeps of two streams, in base64, stays below what is read of an answer. */
const idCount = 2 ** 20;

/** `random` is in [0, 1). */
export function newRequestId(random: number): number {
  return Math.floor(random * idCount);
}

export function withRequestId(request: InstanceRequest, requestId: number): InstanceRequest {
  return { ...request, truncate_output_at: (request.truncate_output_at ?? defaultLimit) + requestId };
}

/** What a record, or an entry of the list of operations, says of it; `undefined` where it says nothing. */
export function outputLimitIn(record: unknown): number | undefined {
  const fields = asRecord(record);
  return asNumber(asRecord(fields?.metadata)?.truncate_output_at) ?? asNumber(fields?.truncate_output_at);
}
