import type { EngineEvent } from "./records/event-files.ts";
import { requireOperation } from "./recovery.ts";
import type { EngineState } from "./state.ts";

/** Yields an operation's events, from the first, as they happen. */
export async function* followEvents(
  state: EngineState,
  operation: string,
  signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
  for await (const event of readEvents(state, operation, {
    ...{ afterId: 0, follow: true, signal },
    idleMilliseconds: Number.POSITIVE_INFINITY,
  }))
    if (event !== undefined) yield event;
}

/** Yields an operation's events, and `undefined` whenever there was none for `idleMilliseconds`. */
export function readEvents(
  state: EngineState,
  operation: string,
  { signal, ...options }: { afterId: number; follow: boolean; idleMilliseconds: number; signal: AbortSignal },
): AsyncGenerator<EngineEvent | undefined> {
  return state.events.read(operation, {
    ...options,
    hasEnded: async () =>
      !state.running.has(operation) && (await requireOperation(state, operation)).finishedAt !== null,
    signal: AbortSignal.any([signal, state.closing]),
  });
}
