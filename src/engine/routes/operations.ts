import {
  type OperationEvent,
  type OperationKind,
  type OperationStatus,
  operationStatuses,
} from "../../service/wire/operation.ts";
import { streamOf } from "../../streams.ts";
import { jsonResponse, RequestError, unbuffered } from "../http/answers.ts";
import { type ListFilter, readChoice, readFlag, readListFilter, readNumber } from "../http/fields.ts";
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
import type { EngineState } from "../state.ts";

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
        ...readListFilter(url, state.clock.now()),
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

interface OperationFilter extends ListFilter {
  status: OperationStatus | undefined;
  kind: OperationKind | undefined;
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

const keepaliveMilliseconds = 10_000;

export const eventRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/operations/:uuid/events",
    async answer({ state, request, url, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      if (!state.events.exists(operation.uuid)) {
        if (operation.finishedAt === null) throw new RequestError(425, "there are no events yet");
        throw new RequestError(410, `the events of operation ${operation.uuid} are not kept any more`);
      }
      const spid = readNumber(url, "spid", 0, 2 ** 31);
      const left = new AbortController();
      const events = readEvents(state, operation.uuid, {
        afterId: Math.max(readLastEventId(request), readNumber(url, "since", 0, 2 ** 53) ?? 0),
        follow: readFlag(url, "follow"),
        idleMilliseconds: keepaliveMilliseconds,
        signal: left.signal,
      });
      const body = streamOf(formatEvents(events, spid), () => left.abort());
      return new Response(body, {
        headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store", ...unbuffered },
      });
    },
  },
];

/** See `Engine.events`. */
export async function* followEvents(
  state: EngineState,
  operation: string,
  signal: AbortSignal,
): AsyncGenerator<OperationEvent> {
  for await (const event of readEvents(state, operation, {
    ...{ afterId: 0, follow: true, signal },
    idleMilliseconds: Number.POSITIVE_INFINITY,
  }))
    if (event !== undefined) yield event;
}

function readEvents(
  state: EngineState,
  operation: string,
  { signal, ...options }: { afterId: number; follow: boolean; idleMilliseconds: number; signal: AbortSignal },
): AsyncGenerator<OperationEvent | undefined> {
  return state.events.read(operation, {
    ...options,
    hasEnded: async () =>
      !state.running.has(operation) && (await requireOperation(state, operation)).finishedAt !== null,
    signal: AbortSignal.any([signal, state.closing]),
  });
}

/** Formats events as server-sent events. `undefined` among them, for a time without events, becomes a keepalive comment. */
async function* formatEvents(
  events: AsyncIterable<OperationEvent | undefined>,
  spid: number | undefined,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const event of events) {
    if (event === undefined) yield encoder.encode(": keepalive\n\n");
    else if (spid === undefined || event.spid === spid)
      yield encoder.encode(`id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
}

function readLastEventId(request: Request): number {
  const text = request.headers.get("Last-Event-Id") ?? "0";
  if (!/^\d+$/.test(text)) throw new RequestError(400, "Last-Event-Id must be a number");
  return Number(text);
}
