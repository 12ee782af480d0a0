/** Records of operations, whichever client has started them: their list, one record, its output. */
import { type LearntCapabilities, pastEndStatuses, unsupportedStatuses } from "../capabilities.ts";
import type { Query } from "../http/address.ts";
import { asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, listIn, maxListed } from "../http/response.ts";
import type { Transport } from "../http/transport.ts";
import { commandOf, type OperationKind, type OperationStatus, outputBytes } from "../wire/operation.ts";
import { statusOf } from "../wire/reader/evidence.ts";
import { operationIdsIn } from "../wire/reader/ids.ts";
import { outputIn } from "../wire/reader/outputs.ts";
import { usualStatus } from "../wire/reader/status.ts";
import { getRecord } from "./polling.ts";
import { readOperation, recordIn } from "./record.ts";

/** An operation without its output. */
export interface OperationSummary {
  uuid: string;
  kind: string;
  /** One of `operationStatuses`, or a status of a newer service. */
  status: string;
  error: string | null;
  /** The time in the service's format. */
  createdAt: string | null;
  durationSeconds: number | null;
  /** The program or shell expression of an instance, the address of an import. */
  command: string | null;
  /** The image that it started from: a UUID or `tag:<name>`. */
  image: string | null;
  /** `null` in a list, unless the service includes it there. */
  exitCode: number | null;
  timedOut: boolean;
}

export interface OperationDetails extends OperationSummary {
  hasEnded: boolean;
  resultImage: string | null;
  resultTag: string | null;
}

export interface OperationFilter {
  status?: OperationStatus | undefined;
  kind?: OperationKind | undefined;
  since?: string | undefined;
  until?: string | undefined;
  /** Maximum number of operations, the newest. */
  limit: number;
}

export interface OperationRecords {
  /** Returns the newest first. Empty if the service lacks `operationList`. */
  listOperations(filter: OperationFilter): Promise<OperationSummary[]>;
  /** Rejects with NotFoundError if there is no such operation. */
  getOperation(operation: string): Promise<OperationDetails>;
  /** Returns all output that the record holds, byte for byte. */
  recordedOutput(operation: string): Promise<Record<"stdout" | "stderr", Uint8Array>>;
}

export function createOperationRecords(
  transport: Transport,
  capabilities: LearntCapabilities,
): OperationRecords {
  return {
    async listOperations({ limit, ...filter }) {
      const found: OperationSummary[] = [];
      const pages = readOperationPages(
        { transport, capabilities },
        { filter, wanted: limit, maxListed, lacking: unsupportedStatuses },
      );
      for await (const page of pages) {
        const summaries = page.map(({ uuid, record }) => summarize(uuid, record));
        found.push(...summaries.filter((operation) => passes(operation, filter)));
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    },

    async getOperation(operation) {
      const { body } = await getRecord(transport, operation);
      const view = readOperation(body, { id: operation });
      const record = recordIn(body);
      return {
        ...summarize(operation, record),
        hasEnded: view.ended !== undefined,
        resultImage: view.images.results[0] ?? view.images.others[0] ?? null,
        resultTag: asText(asRecord(record.result)?.tag) ?? null,
      };
    },

    async recordedOutput(operation) {
      const { body } = await getRecord(transport, operation);
      const record = recordIn(body);
      return {
        stdout: outputBytes(outputIn(record, "stdout")),
        stderr: outputBytes(outputIn(record, "stderr")),
      };
    },
  };
}

/** True if an operation matches the filter. A status or time that the service does not report matches. */
function passes(
  { status, kind, createdAt }: OperationSummary,
  filter: Omit<OperationFilter, "limit">,
): boolean {
  const created = Date.parse(createdAt ?? "");
  const isBefore = (one: number, other: number) => one < other;
  return (
    (filter.status === undefined || status === "" || status === filter.status) &&
    (filter.kind === undefined || kind === filter.kind) &&
    (filter.since === undefined || !isBefore(created, Date.parse(filter.since))) &&
    (filter.until === undefined || !isBefore(Date.parse(filter.until), created))
  );
}

function summarize(uuid: string, record: JsonRecord): OperationSummary {
  const metadata = asRecord(record.metadata) ?? record;
  const { exitCode = null, timedOut } = readOperation(record);
  return {
    uuid,
    kind: asText(record.kind) ?? "instance",
    status: usualStatus(statusOf(record) ?? ""),
    error: asText(record.error) ?? asText(asRecord(record.error)?.message) ?? null,
    createdAt: asText(record.created_at) ?? null,
    durationSeconds: asNumber(record.duration) ?? null,
    command: commandOf(metadata) ?? asText(metadata.url) ?? asText(asRecord(metadata.registry)?.url) ?? null,
    image: asText(metadata.image) ?? null,
    exitCode,
    timedOut,
  };
}

/** `GET /v1/operations`, page by page. */

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
