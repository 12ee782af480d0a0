/** Looks for the operation of a request whose response never came. */
import type { Clock } from "../../clock.ts";
import { type LearntCapabilities, unavailableStatuses } from "../capabilities.ts";
import { asNumber, asRecord, asText } from "../http/json.ts";
import type { Transport } from "../http/transport.ts";
import type { RepeatedId } from "../service.ts";
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
export async function searchTwice(options: SearchOptions, sent: Sent): Promise<SpawnSearch> {
  const search = await searchSpawned(options, sent);
  if (search.kind !== "not there") return search;
  await options.clock.sleep(secondLookMilliseconds, options.signal);
  return searchSpawned(options, sent);
}

/** Returns the limit in a record, or in an entry of the list of operations; `undefined` if there is none. */
function outputLimitIn(record: unknown): number | undefined {
  const fields = asRecord(record);
  return asNumber(asRecord(fields?.metadata)?.truncate_output_at) ?? asNumber(fields?.truncate_output_at);
}
