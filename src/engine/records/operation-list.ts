import type { OperationKind, OperationStatus } from "../../service/wire/operation.ts";
import type { ListFilter } from "../http/fields.ts";
import { isOpen } from "../layout.ts";
import {
  type Operation,
  type OperationRow,
  operationColumns,
  outcomeOfAbandoned,
  toOperation,
  unfinishedOperations,
} from "./operations.ts";
import type { Records } from "./records.ts";

interface OperationListFilter extends ListFilter {
  status: OperationStatus | undefined;
  kind: OperationKind | undefined;
}

/** Lists operations, the newest first. One whose process was killed is listed as failed, even if that is not recorded yet. */
export function listOperations(records: Records, filter: OperationListFilter): Operation[] {
  const abandoned = abandonedOperations(records);
  const conditions = ["1"];
  const parameters: (string | number)[] = [JSON.stringify([...abandoned.keys()])];
  const where = (condition: string, value: string | number | undefined) => {
    if (value === undefined) return;
    conditions.push(condition);
    parameters.push(value);
  };
  where("currentStatus = ?", filter.status);
  where("kind = ?", filter.kind);
  where("created_at >= ?", filter.since);
  where("created_at <= ?", filter.until);
  return records.database
    .query<OperationRow & { shortMetadata: string }, (string | number)[]>(
      // The list leaves out `files`, which are many for a large context.
      `SELECT ${operationColumns}, CASE json_valid(metadata) WHEN 1 THEN json_remove(metadata, '$.files') ELSE metadata END AS shortMetadata,
         CASE WHEN uuid NOT IN (SELECT value FROM json_each(?)) THEN status WHEN cancel_requested THEN 'CANCELLED' ELSE 'FAILED' END AS currentStatus
       FROM operations WHERE ${conditions.join(" AND ")} ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?`,
    )
    .all(...parameters, filter.limit, filter.offset)
    .map(({ shortMetadata, ...row }) =>
      toOperation({ ...row, ...abandoned.get(row.uuid), metadata: shortMetadata }),
    );
}

/** Returns the outcomes of operations whose process was killed, by their UUIDs. */
function abandonedOperations({ database, layout }: Records) {
  return new Map(
    unfinishedOperations(database)
      .filter(({ owner }) => !isOpen(layout, owner))
      .map((operation) => [operation.uuid, outcomeOfAbandoned(operation)]),
  );
}
