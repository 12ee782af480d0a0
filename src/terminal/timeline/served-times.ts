import type { StepEvent } from "../../builder/events.ts";
import type { ServedTime } from "../../service/service.ts";
import type { RequestRecorder } from "./requests.ts";
import type { Span } from "./spans.ts";

/** The times during which the service ran operations, by its own clock. */
interface ServedTimes {
  /** Notes an operation's title and start. */
  note(event: StepEvent, now: number): void;
  /** Adds an operation that has just ended. */
  add(time: ServedTime, now: number): void;
  spans(): Span[];
}

/** The interval in which an operation was started. */
interface Begun {
  from: number;
  to: number;
}

/** The precision of clocks in milliseconds. */
const tolerance = 1;

/** Creates the record. `start`: the build's start. */
export function createServedTimes(start: number, requests: Pick<RequestRecorder, "lastOf">): ServedTimes {
  const spans: Span[] = [];
  /** Titles by operation. */
  const titles = new Map<string, string>();
  const begun = new Map<string, Begun>();
  return {
    note(event, now) {
      if (event.type !== "spawned" && event.type !== "resumed") return;
      titles.set(event.operation, event.title);
      const from = event.type === "spawned" ? requests.lastOf("POST /v1/instances") : undefined;
      if (from !== undefined) begun.set(event.operation, { from, to: now });
    },
    add({ operation, kind, since, seconds }, now) {
      const shift = shiftOf(since, seconds, begun.get(operation), { start, now });
      // An operation of an earlier build began before this one.
      const begin = Math.min(Math.max(since + shift, start), now);
      const details = {
        ...{ operation, since: new Date(since).toISOString(), seconds },
        ...(shift === 0 ? {} : { clockShiftMilliseconds: Math.round(shift) }),
      };
      const name = titles.get(operation) ?? (kind === "image_import" ? "import" : "operation");
      spans.push({
        name,
        start: begin,
        end: Math.max(begin, Math.min(since + shift + seconds * 1000, now)),
        details,
      });
    },
    spans: () => spans,
  };
}

/**
 * Returns what to add to the service's clock to get this machine's. It is 0 if the operation's start is between its request and
 * the response; otherwise the start is moved to their middle. If the request is unknown and the end is outside the build so far,
 * the end is moved to now.
 */
function shiftOf(
  since: number,
  seconds: number,
  begun: Begun | undefined,
  { start, now }: { start: number; now: number },
): number {
  if (begun !== undefined) {
    const isWithin = since >= begun.from - tolerance && since <= begun.to + tolerance;
    return isWithin ? 0 : (begun.from + begun.to) / 2 - since;
  }
  const end = since + seconds * 1000;
  return end >= start && end <= now + tolerance ? 0 : now - end;
}
