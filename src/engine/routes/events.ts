import type { OperationEvent } from "../../service/wire/operation.ts";
import { streamOf } from "../../streams.ts";
import { RequestError, unbuffered } from "../http/answers.ts";
import { readFlag, readNumber } from "../http/fields.ts";
import { requireOperation } from "../recovery.ts";
import type { Route } from "../router.ts";
import type { EngineState } from "../state.ts";

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
