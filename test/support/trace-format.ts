/** Reads a trace in the Trace Event Format (JSON object form), as strictly as its document: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */

interface Slice {
  name: string;
  category: string;
  /** Microseconds. */
  start: number;
  end: number;
  process: string;
  thread: string;
  args: Record<string, unknown>;
}

export interface Trace {
  slices: Slice[];
  /** Names of the slices that each arrow between stages leads from and to. */
  arrows: [from: string, to: string][];
  /** The same of arrows to requests. */
  waits: [from: string, to: string][];
}

type Event = Record<string, unknown>;

const fieldsByPhase: Record<string, readonly string[]> = {
  X: ["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"],
  M: ["name", "ph", "ts", "pid", "tid", "args"],
  s: ["name", "cat", "ph", "id", "ts", "pid", "tid"],
  f: ["name", "cat", "ph", "id", "bp", "ts", "pid", "tid"],
};
const metadataArguments: Record<string, [string, "string" | "number"]> = {
  process_name: ["name", "string"],
  process_sort_index: ["sort_index", "number"],
  thread_name: ["name", "string"],
  thread_sort_index: ["sort_index", "number"],
};

/** Reads a trace. Throws if a viewer would drop something, or draw it in a wrong place. */
export function readTrace(text: string): Trace {
  const document = objectOf(JSON.parse(text), "the trace");
  for (const key of Object.keys(document))
    require(["traceEvents", "displayTimeUnit", "otherData"].includes(key), `unknown key ${key}`);
  require(["ms", "ns"].includes(String(document.displayTimeUnit)), "displayTimeUnit is ms or ns");
  require(Array.isArray(document.traceEvents), "traceEvents is an array");
  const events = (document.traceEvents as unknown[]).map((event) => objectOf(event, "an event"));
  for (const event of events) checkFields(event);
  const names = readNames(events.filter(({ ph }) => ph === "M"));
  const drawn = events.filter(({ ph }) => ph === "X");
  for (const thread of Map.groupBy(drawn, threadOf).values()) checkNesting(thread);
  return {
    slices: drawn.map((event) => sliceOf(event, names)),
    arrows: readArrows(events, drawn, { category: "stage", between: ["step"], to: "step" }),
    waits: readArrows(events, drawn, { category: "wait", between: ["request", "activity"], to: "request" }),
  };
}

function checkFields(event: Event): void {
  const shown = JSON.stringify(event);
  const fields = fieldsByPhase[String(event.ph)];
  require(fields !== undefined, `a phase of the format: ${shown}`);
  require(Object.keys(event).sort().join() ===
    [...(fields ?? [])].sort().join(), `fields of its phase: ${shown}`);
  require(typeof event.name === "string" && event.name !== "", `a name: ${shown}`);
  for (const key of ["ts", "dur", "pid", "tid", "id"])
    if (key in event)
      require(Number.isSafeInteger(event[key]) && Number(event[key]) >= 0, `${key}: ${shown}`);
  if ("cat" in event) require(/^[a-z]+(,[a-z]+)*$/.test(String(event.cat)), `categories: ${shown}`);
  if ("bp" in event) require(event.bp === "e", `a binding point: ${shown}`);
  if ("args" in event) objectOf(event.args, "args");
}

/** Reads the names of processes and threads, each of which is given once. */
function readNames(metadata: readonly Event[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const event of metadata) {
    const name = String(event.name);
    const [key, type] = metadataArguments[name] ?? ["", "string"];
    const value = objectOf(event.args, "args")[key];
    require(typeof value === type, `a name of metadata, with its argument: ${JSON.stringify(event)}`);
    const place = `${name} ${event.pid} ${name.startsWith("thread") ? event.tid : ""}`;
    require(!names.has(place), `given once: ${place}`);
    names.set(place, String(value));
  }
  return names;
}

function sliceOf(event: Event, names: ReadonlyMap<string, string>): Slice {
  const process = names.get(`process_name ${event.pid} `);
  const thread = names.get(`thread_name ${event.pid} ${event.tid}`);
  require(process !== undefined && thread !== undefined, `a thread with a name: ${JSON.stringify(event)}`);
  const start = Number(event.ts);
  return {
    name: String(event.name),
    category: String(event.cat),
    ...{ start, end: start + Number(event.dur) },
    ...{ process: process ?? "", thread: thread ?? "" },
    args: objectOf(event.args, "args"),
  };
}

/** Requires that two slices of a thread do not overlap, unless one contains the other. */
function checkNesting(events: readonly Event[]): void {
  const open: number[] = [];
  const ordered = [...events].sort((a, b) => Number(a.ts) - Number(b.ts) || Number(b.dur) - Number(a.dur));
  for (const event of ordered) {
    const [start, end] = [Number(event.ts), Number(event.ts) + Number(event.dur)];
    while (open.length > 0 && (open.at(-1) ?? 0) <= start) open.pop();
    require(open.length === 0 || end <= (open.at(-1) ?? 0), `within what is open: ${JSON.stringify(event)}`);
    open.push(end);
  }
}

/** Reads the arrows of a category. Each begins and ends once, in a slice, and leads forward in time. */
function readArrows(
  events: readonly Event[],
  drawn: readonly Event[],
  { category, between, to: target }: { category: string; between: readonly string[]; to: string },
): [string, string][] {
  const ends = (phase: string) => events.filter(({ ph, cat }) => ph === phase && cat === category);
  const boundTo = (event: Event) => {
    const around = drawn.filter(
      (slice) =>
        threadOf(slice) === threadOf(event) &&
        Number(slice.ts) <= Number(event.ts) &&
        Number(event.ts) <= Number(slice.ts) + Number(slice.dur),
    );
    require(around.length > 0, `a slice around it: ${JSON.stringify(event)}`);
    return around;
  };
  require(ends("s").length === ends("f").length, "as many arrows begin as end");
  return ends("s").map((from) => {
    const [to, ...more] = ends("f").filter(({ id }) => id === from.id);
    require(to !== undefined && more.length === 0, `one end: ${JSON.stringify(from)}`);
    if (to === undefined) return ["", ""];
    require(to.name === from.name && to.cat === from.cat, `of one kind: ${JSON.stringify(from)}`);
    require(Number(from.ts) <= Number(to.ts), `forward: ${JSON.stringify(from)}`);
    const begin = boundTo(from).find(({ cat }) => between.includes(String(cat)));
    const end = boundTo(to).find(({ cat, ts }) => cat === target && ts === to.ts);
    return [String(begin?.name), String(end?.name)];
  });
}

function threadOf({ pid, tid }: Event): string {
  return `${pid} ${tid}`;
}

function objectOf(value: unknown, what: string): Event {
  require(typeof value === "object" && value !== null && !Array.isArray(value), `${what} is an object`);
  return value as Event;
}

function require(condition: boolean, what: string): void {
  if (!condition) throw new Error(`no trace: expected ${what}`);
}
