/** Looks for the operation of a request whose response never came. */
import type { Clock } from "../../clock.ts";
import { sha256Of } from "../../sha256.ts";
import { type LearntCapabilities, unavailableStatuses } from "../capabilities.ts";
import { asNumber, asRecord, asText } from "../http/json.ts";
import type { Transport } from "../http/transport.ts";
import type { RepeatedId } from "../service.ts";
import type { InstanceRequest } from "../wire/instance.ts";
import { readOperationPages } from "./operation-records.ts";
import { getRecord } from "./polling.ts";

export interface Sent {
  /** Its `truncate_output_at`, the request id included. */
  limit: number;
  /** Undefined if no other request has its id. */
  repeats?: RepeatedId | undefined;
  /** Milliseconds since the epoch, by this machine's clock. */
  at: number;
  command?: string;
}

export type SpawnSearch =
  | { kind: "found"; operation: string }
  /** `similar`: operations that may be of this request, but also of another that runs the same command. */
  | { kind: "not there"; similar: readonly string[] }
  /** This service has no list of operations. */
  | { kind: "unsupported" };

export interface SearchOptions {
  transport: Transport;
  capabilities: LearntCapabilities;
  clock: Clock;
  signal: AbortSignal;
}

/** Maximum error of what the service's responses tell about its clock. */
const clockSkewMilliseconds = 15 * 60_000;
/** Maximum time between the clock that a service notes an operation with and the one that its responses tell. */
const noteSkewMilliseconds = 2000;
const maxListed = 1000;
/** Maximum number of records that are read one by one if the list has no request ids. */
const maxLookedAt = 25;

/** Searches once in what the service has started since. */
export async function searchSpawned(options: SearchOptions, sent: Sent): Promise<SpawnSearch> {
  const { capabilities, transport, signal } = options;
  const since = new Date(sent.at + Math.min(transport.clockOffset(), 0) - clockSkewMilliseconds);
  const filter = { kind: "instance", since: since.toISOString() };
  const similar: string[] = [];
  let looks = 0;
  for await (const page of readOperationPages(options, { filter, maxListed, lacking: unavailableStatuses })) {
    for (const { uuid: operation, record: listed } of page) {
      let record: unknown = listed;
      if (outputLimitIn(record) === undefined && looks < maxLookedAt) {
        looks++;
        record = (await getRecord(transport, operation, { handles: unavailableStatuses, signal })).body;
      }
      const limit = outputLimitIn(record);
      if (limit === sent.limit && sent.repeats?.isOfAnother(operation) === true) continue;
      // By the service's clock, as the response that has just come tells it.
      const earliest = sent.at + transport.clockOffset() - noteSkewMilliseconds;
      const isOfNow = sent.repeats === undefined || createdAt(record, listed) >= earliest;
      if (limit === sent.limit && isOfNow) return { kind: "found", operation };
      const command = asText(asRecord(asRecord(record)?.metadata)?.command);
      const isSimilar = limit === undefined && command !== undefined && command === sent.command;
      if (isSimilar || limit === sent.limit) similar.push(operation);
    }
  }
  return capabilities.lacks("operationList") ? { kind: "unsupported" } : { kind: "not there", similar };
}

/** Returns NaN if no record tells the time. */
function createdAt(...records: readonly unknown[]): number {
  const times = records.map((record) => Date.parse(asText(asRecord(record)?.created_at) ?? ""));
  return times.find((time) => !Number.isNaN(time)) ?? Number.NaN;
}

/** Time for an operation to appear: a proxy that has given up does not stop the service behind it. */
const secondLookMilliseconds = 4000;

/** Searches as `searchSpawned` does, and once more some seconds later if the operation is not there. */
export async function searchPatiently(options: SearchOptions, sent: Sent): Promise<SpawnSearch> {
  const search = await searchSpawned(options, sent);
  if (search.kind !== "not there") return search;
  await options.clock.sleep(secondLookMilliseconds, options.signal);
  return searchSpawned(options, sent);
}

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

/** Returns the limit in a record, or in an entry of the list of operations; `undefined` if there is none. */
function outputLimitIn(record: unknown): number | undefined {
  const fields = asRecord(record);
  return asNumber(asRecord(fields?.metadata)?.truncate_output_at) ?? asNumber(fields?.truncate_output_at);
}
