import type { OperationEvent } from "../../service/wire/operation.ts";
import { RequestError } from "../http/answers.ts";
import { readFlag, readNumber } from "../http/query.ts";
import type { Route } from "../http/router.ts";
import { requireOperation } from "../recovery.ts";

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
      const events = state.events.read(operation.uuid, {
        afterId: Math.max(readLastEventId(request), readNumber(url, "since", 0, 2 ** 53) ?? 0),
        follow: readFlag(url, "follow"),
        hasEnded: async () => (await requireOperation(state, operation.uuid)).finishedAt !== null,
        idleMilliseconds: keepaliveMilliseconds,
        signal: AbortSignal.any([left.signal, state.closing]),
      });
      const encoder = new TextEncoder();
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          for (;;) {
            const { done, value } = await events.next();
            if (done === true) return controller.close();
            if (value !== undefined && spid !== undefined && value.spid !== spid) continue;
            const text = value === undefined ? ": keepalive\n\n" : formatEvent(value);
            return controller.enqueue(encoder.encode(text));
          }
        },
        async cancel() {
          left.abort();
          await events.return(undefined);
        },
      });
      return new Response(body, {
        headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store" },
      });
    },
  },
];

function formatEvent(event: OperationEvent): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function readLastEventId(request: Request): number {
  const text = request.headers.get("Last-Event-Id") ?? "0";
  if (!/^\d+$/.test(text)) throw new RequestError(400, "Last-Event-Id must be a number");
  return Number(text);
}
