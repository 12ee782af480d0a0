/** `GET /v1/operations`, page by page. */
import { type LearntCapabilities, pastEndStatuses } from "../capabilities.ts";
import type { Query } from "../http/address.ts";
import { asRecord, type JsonRecord } from "../http/json.ts";
import { aList, listIn } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
import { operationIdsIn } from "../wire/reader/new-operation.ts";

interface ListedOperation {
  uuid: string;
  record: JsonRecord;
}

interface PagesOptions {
  transport: Transport;
  capabilities: LearntCapabilities;
  signal?: AbortSignal;
}

interface PagesRequest {
  filter: Query;
  /** Number of operations to ask for at first, if fewer are needed than a page has. */
  wanted?: number;
  /** Maximum number of operations, for a list without an end. */
  maxListed: number;
  /** Statuses of a service without the list. */
  lacking: readonly number[];
}

const pageSize = 1000;

/** Yields the operations of each page that earlier pages do not have. Yields none, and notes it, if the service has no list. */
export async function* readOperationPages(
  { transport, capabilities, signal }: PagesOptions,
  { filter, wanted = pageSize, maxListed, lacking }: PagesRequest,
): AsyncGenerator<readonly ListedOperation[]> {
  const seen = new Set<string>();
  while (seen.size < maxListed && !capabilities.lacks("operationList")) {
    const isFirst = seen.size === 0;
    const handles = isFirst ? lacking : [...lacking, ...pastEndStatuses];
    // A service that ignores the filter has more entries to read than are asked for.
    const limit = isFirst ? Math.min(wanted, pageSize) : pageSize;
    const { status, body } = await transport.call({
      method: "GET",
      path: "/v1/operations",
      query: { ...filter, limit: String(limit), offset: isFirst ? undefined : String(seen.size) },
      repeatable: true,
      handles,
      requires: aList("operations"),
      ...(signal && { signal }),
    });
    if (handles.includes(status)) {
      if (isFirst) capabilities.learn("operationList", false);
      return;
    }
    const fresh = listIn(body, "operations").flatMap((item) => {
      const record = asRecord(item);
      const [uuid] = operationIdsIn(record);
      return record === undefined || uuid === undefined || seen.has(uuid) ? [] : [{ uuid, record }];
    });
    // A short page may not be the last, since a service may return fewer than requested. A server that ignores the offset
    // returns the same page forever.
    if (fresh.length === 0) return;
    for (const { uuid } of fresh) seen.add(uuid);
    yield fresh;
  }
}
