import type { StepEvent } from "../../builder/events.ts";
import type { Fetch, ServedTime } from "../../service/service.ts";
import type { Span } from "./spans.ts";

/** Records the requests to a service: when each began, and when the head of its response arrived. */
export interface RequestRecorder {
  /** Returns a fetch that records its requests. */
  watch(fetch: Fetch): Fetch;
  /** Returns the time at which the last finished request of that name was sent. */
  lastOf(name: string): number | undefined;
  /** Returns all requests. Unfinished ones end now. */
  end(now: number): Span[];
}

/** Creates a recorder. `now`: milliseconds since the epoch, with fractions. */
export function createRequestRecorder(now: () => number): RequestRecorder {
  const spans: { -readonly [Key in keyof Span]: Span[Key] }[] = [];
  return {
    watch: (fetch) => async (input, init) => {
      const span = { ...describe(input, init), start: now(), end: Number.NaN };
      spans.push(span);
      try {
        const response = await fetch(input, init);
        const timing = response.headers.get("server-timing");
        const { status } = response;
        span.details = {
          ...span.details,
          status,
          ...(timing === null ? {} : { serverTiming: readServerTiming(timing) }),
        };
        return response;
      } catch (error) {
        span.details = { ...span.details, failed: true };
        throw error;
      } finally {
        span.end = now();
      }
    },
    lastOf: (name) => spans.findLast((span) => span.name === name && !Number.isNaN(span.end))?.start,
    end: (at) =>
      spans.map((span) =>
        Number.isNaN(span.end) ? { ...span, end: at, details: { ...span.details, unfinished: true } } : span,
      ),
  };
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;

/** Describes a request. Requests of one kind have the same name. Headers and a password in the URL are not kept. */
function describe(input: string | Request, init: RequestInit | undefined): Pick<Span, "name" | "details"> {
  const { pathname, search } = new URL(typeof input === "string" ? input : input.url);
  const method = init?.method ?? (typeof input === "string" ? "GET" : input.method);
  return { name: `${method} ${pathname.replace(uuid, "{id}")}`, details: { path: pathname + search } };
}

const token = '[^\\s,;="]+';
const parameter = `\\s*;\\s*(${token})(?:\\s*=\\s*(?:"((?:\\\\.|[^"\\\\])*)"|([^\\s,;"]*)))?`;

/** Returns milliseconds by name from `db;dur=53, app;dur=47.2;desc="it"` (W3C, Server Timing). Without a duration it is 0. */
export function readServerTiming(header: string): Record<string, number> {
  const metrics = header.matchAll(new RegExp(`(${token})((?:${parameter})*)`, "g"));
  return Object.fromEntries(
    Array.from(metrics, ([, name = "", parameters = ""]) => {
      const duration = [...parameters.matchAll(new RegExp(parameter, "g"))].find(
        ([, key = ""]) => key.toLowerCase() === "dur",
      );
      return [name, Number.parseFloat(duration?.[2] ?? duration?.[3] ?? "0") || 0];
    }),
  );
}

/** The times during which the service ran operations, by its own clock. */
interface ServedTimes {
  /** Records an operation's title and start. */
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
