import type { Database } from "bun:sqlite";
import {
  type InstanceResult,
  isTerminal,
  type OperationKind,
  type OperationRecord,
  type OperationStatus,
} from "../../service/wire/operation.ts";
import { isOpen } from "../layout.ts";
import { parseObject, type Records } from "./records.ts";

/** An operation's record. Its metadata never contains credentials. */
export interface Operation {
  uuid: string;
  kind: OperationKind;
  status: OperationStatus;
  error: string | null;
  /** The engine that runs it (`Layout.owner`). */
  owner: string;
  cancelRequested: boolean;
  metadata: Record<string, unknown>;
  result: InstanceResult | null;
  startImage: string | null;
  resultImage: string | null;
  resultTag: string | null;
  createdAt: number;
  finishedAt: number | null;
}

export type RecordedOutcome = SuccessfulOutcome | FailedOutcome;

export interface SuccessfulOutcome {
  status: "SUCCESS";
  error: null;
  result?: InstanceResult;
  image: string | undefined;
  tag?: string | undefined;
}

export type FailedOutcome =
  | { status: "FAILED"; error: string; isDiskFull?: boolean }
  | { status: "CANCELLED"; error: null };

export interface OperationRow extends Omit<Operation, "cancelRequested" | "metadata" | "result"> {
  cancelRequested: number;
  metadata: string;
  result: string | null;
}

export const operationColumns = `uuid, kind, status, error, owner, cancel_requested AS cancelRequested, metadata, result,
  start_image AS startImage, result_image AS resultImage, result_tag AS resultTag, created_at AS createdAt,
  finished_at AS finishedAt`;

/** Records an operation as executing: there is no queue. */
export function addOperation(
  database: Database,
  operation: Pick<Operation, "uuid" | "kind" | "owner" | "metadata" | "createdAt"> & { startImage?: string },
): void {
  database
    .query<undefined, [string, string, string, string, string | null, number]>(
      `INSERT INTO operations (uuid, kind, status, owner, metadata, start_image, created_at)
       VALUES (?, ?, 'EXECUTING', ?, ?, ?, ?)`,
    )
    .run(
      operation.uuid,
      operation.kind,
      operation.owner,
      JSON.stringify(operation.metadata),
      operation.startImage ?? null,
      operation.createdAt,
    );
}

/** True for a valid operation ID. IDs become paths, and an edited record must not lead elsewhere. */
export function isOperationId(uuid: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uuid);
}

export function findOperation(database: Database, uuid: string): Operation | undefined {
  if (!isOperationId(uuid)) return undefined;
  const row = database
    .query<OperationRow, [string]>(`SELECT ${operationColumns} FROM operations WHERE uuid = ?`)
    .get(uuid);
  return row === null ? undefined : toOperation(row);
}

export function requestCancel(database: Database, uuid: string): void {
  database.query<undefined, [string]>("UPDATE operations SET cancel_requested = 1 WHERE uuid = ?").run(uuid);
}

/** Records an operation's outcome. Returns false if it already has one, which stays. */
export function finishOperation(
  database: Database,
  uuid: string,
  outcome: RecordedOutcome,
  finishedAt: number,
): boolean {
  const made = outcome.status === "SUCCESS" ? outcome : undefined;
  const isDiskFull = outcome.status === "FAILED" && outcome.isDiskFull === true;
  const result: InstanceResult | undefined = isDiskFull ? { failure: "disk_full" } : made?.result;
  const { changes } = database
    .query<undefined, [string, string | null, string | null, string | null, string | null, number, string]>(
      `UPDATE operations SET status = ?, error = ?, result = ?, result_image = ?, result_tag = ?, finished_at = ?
       WHERE uuid = ? AND finished_at IS NULL`,
    )
    .run(
      outcome.status,
      outcome.error,
      result === undefined ? null : JSON.stringify(result),
      made?.image ?? null,
      made?.tag ?? null,
      finishedAt,
      uuid,
    );
  return changes > 0;
}

/** Returns all operations that have not ended, in any process. */
export function unfinishedOperations(database: Database): Operation[] {
  return database
    .query<OperationRow, []>(`SELECT ${operationColumns} FROM operations WHERE finished_at IS NULL`)
    .all()
    .filter(({ uuid }) => isOperationId(uuid))
    .map(toOperation);
}

/** A query with JSON functions fails at a record that is not JSON. */
const validMetadata = "CASE json_valid(metadata) WHEN 1 THEN metadata ELSE '{}' END";

/**
 * Returns the images that running operations of living processes start from, copy from, mount or take unchanged files from. They
 * can't be removed.
 */
export function imagesInUse({ database, layout }: Records): Set<string> {
  const rows = database
    .query<{ owner: string; image: string }, []>(
      `SELECT owner, start_image AS image FROM operations WHERE finished_at IS NULL AND start_image IS NOT NULL
       UNION SELECT owner, value FROM operations, json_each(${validMetadata})
       WHERE finished_at IS NULL AND key = 'earlier_image' AND type = 'text'
       ${["copies", "mounts"]
         .map(
           (field) => `UNION SELECT owner, json_extract(part.value, '$.image')
       FROM operations, json_each(${validMetadata}, '$.${field}') AS part
       WHERE finished_at IS NULL AND part.type = 'object' AND part.value ->> 'image' IS NOT NULL`,
         )
         .join(" ")}`,
    )
    .all();
  return new Set(rows.filter(({ owner }) => isOpen(layout, owner)).map(({ image }) => image));
}

/** Returns the outcome of an operation whose process was killed. */
export function outcomeOfAbandoned({ cancelRequested }: Operation): FailedOutcome {
  return cancelRequested
    ? { status: "CANCELLED", error: null }
    : { status: "FAILED", error: "the process that ran this operation was killed" };
}

/** Returns the response of `GET /v1/operations/{uuid}`. */
export function describeOperation(operation: Operation, now: number): OperationRecord {
  const { uuid, kind, status, error, metadata, result, resultImage, resultTag, createdAt, finishedAt } =
    operation;
  return {
    uuid,
    kind,
    status,
    error,
    created_at: new Date(createdAt).toISOString(),
    duration: ((finishedAt ?? now) - createdAt) / 1000,
    // The size is left out: measuring a layer means looking at each of its files.
    image_size: null,
    ...describeConsumption(result),
    metadata: kind === "instance" && result !== null ? { ...metadata, result } : metadata,
    image_uuid: operation.startImage,
    result_image_uuid: resultImage,
    result: isTerminal(status) ? { image: resultImage, tag: resultTag } : null,
  };
}

function describeConsumption(result: InstanceResult | null) {
  const { user_cpu_time, system_cpu_time, max_rss } = result?.resources ?? {};
  const isKnown = user_cpu_time !== undefined && system_cpu_time !== undefined;
  return {
    consumed_cpu: isKnown ? user_cpu_time + system_cpu_time : null,
    consumed_memory: max_rss === undefined ? null : max_rss * 1024,
  };
}

/** Returns the data of an operation's last event. */
export function describeCompletion(outcome: RecordedOutcome, milliseconds: number): Record<string, unknown> {
  return {
    status: outcome.status,
    error: outcome.error,
    duration_ms: milliseconds,
    result_image_uuid: (outcome.status === "SUCCESS" ? outcome.image : undefined) ?? null,
    image_size_bytes: null,
  };
}

/** Returns an entry of `GET /v1/operations`: the operation without its output, but with its exit code. */
export function summarizeOperation(operation: Operation, now: number): OperationRecord {
  const { metadata, ...record } = describeOperation(operation, now);
  const { result, ...rest } = metadata ?? {};
  return {
    ...record,
    metadata: result?.state === undefined ? rest : { ...rest, result: { state: result.state } },
  };
}

export function toOperation(row: OperationRow): Operation {
  return {
    ...row,
    cancelRequested: row.cancelRequested !== 0,
    metadata: parseObject(row.metadata) ?? {},
    result: row.result === null ? null : ((parseObject(row.result) as InstanceResult | undefined) ?? null),
  };
}
