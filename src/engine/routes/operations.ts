import { operationStatuses } from "../../service/wire/operation.ts";
import { streamOf } from "../../streams.ts";
import { queryChoice, queryFlag, queryNumber, readBody, readListFilter } from "../http/fields.ts";
import { jsonResponse, RequestError, respondStarted, unbuffered } from "../http/responses.ts";
import { readEvents } from "../operation-events.ts";
import { withOutput } from "../processes/folded-result.ts";
import type { EngineEvent } from "../records/event-files.ts";
import { listOperations } from "../records/operation-list.ts";
import { describeOperation, summarizeOperation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { Route } from "../router.ts";
import { cancelOperation } from "../run-operation.ts";

export const operationRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/instances",
    async respond({ state, request }) {
      const { startRequested } = await import("../instances/start-instance.ts");
      const { uuid, metadata } = await startRequested(state, await readBody(request));
      return respondStarted(uuid, metadata);
    },
  },
  {
    method: "GET",
    path: "/v1/operations",
    respond({ state, url }) {
      const operations = listOperations(state, {
        status: queryChoice(url, "status", operationStatuses),
        kind: queryChoice(url, "kind", ["instance", "image_import"]),
        ...readListFilter(url, state.clock.now()),
      });
      return jsonResponse(operations.map((operation) => summarizeOperation(operation, state.clock.now())));
    },
  },
  {
    method: "GET",
    path: "/v1/operations/:uuid",
    async respond({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      const events = () => state.events.readAll(operation.uuid, state.closing);
      const result = operation.result && (await withOutput(operation.result, events));
      return jsonResponse(describeOperation({ ...operation, result }, state.clock.now()));
    },
  },
  {
    method: "DELETE",
    path: "/v1/operations/:uuid",
    async respond({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      if (operation.finishedAt !== null) {
        throw new RequestError(409, `operation ${operation.uuid} has already ended (${operation.status})`);
      }
      cancelOperation(state, operation);
      return jsonResponse({ uuid: operation.uuid }, 202);
    },
  },
];

const keepaliveMilliseconds = 10_000;

export const eventRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/operations/:uuid/events",
    async respond({ state, request, url, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      if (!state.events.exists(operation.uuid)) {
        if (operation.finishedAt === null) throw new RequestError(425, "there are no events yet");
        throw new RequestError(410, `the events of operation ${operation.uuid} are not kept any more`);
      }
      const spid = queryNumber(url, "spid", 0, 2 ** 31);
      const left = new AbortController();
      const events = readEvents(state, operation.uuid, {
        afterId: Math.max(readLastEventId(request), queryNumber(url, "since", 0, 2 ** 53) ?? 0),
        follow: queryFlag(url, "follow"),
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

/** Formats events as server-sent events. An `undefined`, which stands for a time without events, becomes a keepalive comment. */
async function* formatEvents(
  events: AsyncIterable<EngineEvent | undefined>,
  spid: number | undefined,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const event of events) {
    if (event === undefined) yield encoder.encode(": keepalive\n\n");
    else if (spid === undefined || event.spid === spid) {
      const { bytes: _, ...sent } = event;
      yield encoder.encode(`id: ${sent.id}\nevent: ${sent.type}\ndata: ${JSON.stringify(sent)}\n\n`);
    }
  }
}

function readLastEventId(request: Request): number {
  const text = request.headers.get("Last-Event-Id") ?? "0";
  if (!/^\d+$/.test(text)) throw new RequestError(400, "Last-Event-Id must be a number");
  return Number(text);
}
