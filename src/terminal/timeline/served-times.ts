import type { StepEvent } from "../../builder/events.ts";
import type { ServedTime } from "../../service/service.ts";
import type { RequestRecorder } from "./requests.ts";
import type { Span } from "./spans.ts";

/** When the service was at operations, told by its own clock. */
interface ServedTimes {
  /** Hears what operations are for, and when they were begun. */
  note(event: StepEvent, now: number): void;
  /** An operation has just ended. */
  add(time: ServedTime, now: number): void;
  spans(): Span[];
}

/** The moments between which an operation was begun. */
interface Begun {
  from: number;
  to: number;
}

/** Clocks tell milliseconds. */
const tolerance = 1;

/** `start`: the build's. */
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
      // One of an earlier build began before this one.
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
 * What to add to the service's clock to have this machine's: nothing, where the operation has begun between its request and
 * the response, else what puts it in their middle. Of one whose request isn't known, what has it end now, if it would end later.
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
