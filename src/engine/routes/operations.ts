import { type OperationKind, type OperationStatus, operationStatuses } from "../../service/wire/operation.ts";
import { jsonResponse, RequestError } from "../http/answers.ts";
import { readChoice, readPage, readTime } from "../http/fields.ts";
import { isOpen } from "../layout.ts";
import { withOutput } from "../processes/folded-result.ts";
import {
  describeOperation,
  type Operation,
  type OperationRow,
  operationColumns,
  outcomeOfAbandoned,
  summarizeOperation,
  toOperation,
  unfinishedOperations,
} from "../records/operations.ts";
import type { Records } from "../records/records.ts";
import { requireOperation } from "../recovery.ts";
import type { Route } from "../router.ts";
import { cancelOperation } from "../run-operation.ts";

export const operationRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/instances",
    // Loaded with the first command: a build that finds all of its layers cached runs none.
    answer: async (call) => (await import("../instances/start-instance.ts")).startInstance(call),
  },
  {
    method: "GET",
    path: "/v1/operations",
    answer({ state, url }) {
      const operations = listOperations(state, {
        status: readChoice(url, "status", operationStatuses),
        kind: readChoice(url, "kind", ["instance", "image_import"]),
        since: readTime(url, "since", state.clock.now()),
        until: readTime(url, "until", state.clock.now()),
        ...readPage(url),
      });
      return jsonResponse(operations.map((operation) => summarizeOperation(operation, state.clock.now())));
    },
  },
  {
    method: "GET",
    path: "/v1/operations/:uuid",
    async answer({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      const events = () => state.events.readAll(operation.uuid, state.closing);
      const result = operation.result && (await withOutput(operation.result, events));
      return jsonResponse(describeOperation({ ...operation, result }, state.clock.now()));
    },
  },
  {
    method: "DELETE",
    path: "/v1/operations/:uuid",
    async answer({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      if (operation.finishedAt !== null) {
        throw new RequestError(409, `operation ${operation.uuid} has already ended (${operation.status})`);
      }
      cancelOperation(state, operation);
      return jsonResponse({ uuid: operation.uuid }, 202);
    },
  },
];

interface OperationFilter {
  status: OperationStatus | undefined;
  kind: OperationKind | undefined;
  since: number | undefined;
  until: number | undefined;
  limit: number;
  offset: number;
}

/** Lists operations, the newest first. Those whose process was killed have failed, even if that is not recorded yet. */
function listOperations(records: Records, filter: OperationFilter): Operation[] {
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
