import type { OperationEvent } from "../../src/service/wire/operation.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import type { FakeOperation } from "./state.ts";

/** Streams the operation's events after `Last-Event-Id`, with `follow=true` until its completion. */
export function streamEvents({ state, request, recorded, parameter }: RouteCall): Response {
  const operation = state.operations.get(parameter);
  if (operation === undefined) return answerWith.error(404, `no operation ${parameter}`);
  const { query, headers } = recorded;
  const after = Math.max(Number(headers["last-event-id"] ?? 0), Number(query.since ?? 0));
  const follows = ["1", "true"].includes(query.follow ?? "");
  const spid = query.spid === undefined ? undefined : Number(query.spid);
  if (Number.isNaN(after) || Number.isNaN(spid)) return answerWith.error(400, "an event has a number");
  const frames = follow(operation, { after, follows, spid }, request.signal);
  return new Response(encodeAll(frames), { headers: { "content-type": "text/event-stream" } });
}

/** Returns an event in the form of the wire protocol. */
export function frameOf(event: OperationEvent): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

async function* follow(
  operation: FakeOperation,
  { after, follows, spid }: { after: number; follows: boolean; spid: number | undefined },
  signal: AbortSignal,
): AsyncGenerator<string> {
  const gone = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  let next = after;
  yield ": keepalive\n\n";
  while (!signal.aborted) {
    // The promise is read before the events, so that no event in between is missed.
    const { changed } = operation;
    for (const event of operation.events.slice(next)) {
      next++;
      if (spid === undefined || event.spid === spid) yield frameOf(event);
      if (event.type === "completion") return;
    }
    if (!follows) return;
    await Promise.race([changed, gone]);
  }
}

function encodeAll(frames: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await frames.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await frames.return(undefined);
    },
  });
}
