import type { Fetch } from "../../service/service.ts";
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
