/** Looks for the operation of a request whose response never came. */
import type { Clock } from "../../clock.ts";
import { type LearntCapabilities, pastEndStatuses, unavailableStatuses } from "../capabilities.ts";
import { asRecord, asText, idIn } from "../http/json.ts";
import { aList, listIn } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
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
  if (capabilities.lacks("operationList")) return { kind: "unsupported" };
  const seen = new Set<string>();
  const similar: string[] = [];
  let looks = 0;
  while (seen.size < maxListed) {
    const offset = seen.size;
    const page = await readPage(options, sent, offset);
    if (page === undefined && offset === 0) {
      capabilities.learn("operationList", false);
      return { kind: "unsupported" };
    }
    for (const listed of page ?? []) {
      const operation = idIn(asRecord(listed));
      if (operation === undefined || seen.has(operation)) continue;
      seen.add(operation);
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
    // A short page may not be the last: some services return fewer entries per page than requested.
    if (seen.size === offset) break;
  }
  return { kind: "not there", similar };
}

/** Returns a page of what the service has started since; `undefined` if it has no list, or no such page. */
async function readPage(
  { transport, signal }: SearchOptions,
  sent: Sent,
  offset: number,
): Promise<readonly unknown[] | undefined> {
  const handles = offset === 0 ? unavailableStatuses : [...unavailableStatuses, ...pastEndStatuses];
  const { status, body } = await transport.call({
    method: "GET",
    path: "/v1/operations",
    query: {
      kind: "instance",
      since: new Date(sent.at + Math.min(transport.clockOffset(), 0) - clockSkewMilliseconds).toISOString(),
      limit: String(maxListed),
      offset: offset === 0 ? undefined : String(offset),
    },
    repeatable: true,
    handles,
    requires: aList("operations"),
    signal,
  });
  return handles.includes(status) ? undefined : listIn(body, "operations");
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
