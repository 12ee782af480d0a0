/** Looks for the operation of a request whose response never came. */
import type { Clock } from "../../clock.ts";
import { type LearntCapabilities, unavailableStatuses } from "../capabilities.ts";
import { asRecord, asText } from "../http/json.ts";
import type { Transport } from "../http/transport.ts";
import { readOperationPages } from "./operation-pages.ts";
import { getRecord } from "./polling.ts";
import { outputLimitIn } from "./request-id.ts";

export interface Sent {
  /** Its `truncate_output_at`, the request id included. */
  limit: number;
  /** Milliseconds since the epoch, by this machine's clock. */
  at: number;
  command?: string;
}

export type SpawnSearch =
  | { kind: "found"; operation: string }
  /** `similar`: operations of the same command whose records have no request id. */
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
      if (outputLimitIn(record) === sent.limit) return { kind: "found", operation };
      const command = asText(asRecord(asRecord(record)?.metadata)?.command);
      if (outputLimitIn(record) === undefined && command !== undefined && command === sent.command)
        similar.push(operation);
    }
  }
  return capabilities.lacks("operationList") ? { kind: "unsupported" } : { kind: "not there", similar };
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
