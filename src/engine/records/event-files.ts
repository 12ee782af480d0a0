import { appendFileSync, closeSync, constants, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { type Clock, steadyTime } from "../../clock.ts";
import { type OperationEvent, sandboxSpid } from "../../service/wire/operation.ts";
import type { Layout } from "../layout.ts";
import { LineReader } from "./line-reader.ts";

/** Flags that neither follow a link nor wait for a pipe in a log's place. */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const appending = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;

/**
 * The events of all operations: one file per operation, one JSON object per line. Events are written as they happen, so that
 * another process can follow them, and they outlive this process.
 */
export class EventFiles {
  readonly #layout: Layout;
  readonly #clock: Clock;
  /** Functions that wake the followers in this process; those in other processes poll. */
  readonly #followers = new Map<string, Set<() => void>>();
  readonly #nextIds = new Map<string, number>();

  constructor(layout: Layout, clock: Clock) {
    this.#layout = layout;
    this.#clock = clock;
  }

  /** Makes an empty log, so that followers wait for the first event. */
  create(operation: string): void {
    appendText(this.#path(operation), "");
  }

  append(operation: string, spid: number, type: string, data: Record<string, unknown>): void {
    const id = this.#nextIds.get(operation) ?? this.#resume(operation);
    this.#nextIds.set(operation, id + 1);
    const event: OperationEvent = { id, ts: new Date(this.#clock.now()).toISOString(), spid, type, data };
    appendText(this.#path(operation), `${JSON.stringify(event)}\n`);
    for (const wake of this.#followers.get(operation) ?? []) wake();
  }

  /** Appends an operation's last event. On a full disk it is missing; the operation's record has the outcome anyway. */
  complete(operation: string, data: Record<string, unknown>): void {
    try {
      this.append(operation, sandboxSpid, "completion", data);
    } catch {
      for (const wake of this.#followers.get(operation) ?? []) wake();
    }
    this.#nextIds.delete(operation);
  }

  exists(operation: string): boolean {
    return existsSync(this.#path(operation));
  }

  /** Reads all events that exist now. */
  readAll(operation: string, signal: AbortSignal): AsyncGenerator<OperationEvent | undefined> {
    const never = { idleMilliseconds: Number.POSITIVE_INFINITY, hasEnded: async () => true };
    return this.read(operation, { afterId: 0, follow: false, signal, ...never });
  }

  /**
   * Reads the events after `afterId`. With `follow` it waits for more until `completion`, or until `hasEnded` and everything is
   * read. It yields `undefined` whenever no event came for `idleMilliseconds`.
   */
  async *read(
    operation: string,
    options: {
      afterId: number;
      follow: boolean;
      hasEnded: () => Promise<boolean>;
      idleMilliseconds: number;
      signal: AbortSignal;
    },
  ): AsyncGenerator<OperationEvent | undefined> {
    using reader = new LineReader(this.#path(operation));
    let quietSince = steadyTime(this.#clock);
    let hadEnded = false;
    while (!options.signal.aborted) {
      const events = parseLines(reader.next());
      for (const event of events) {
        if (event.id > options.afterId) yield event;
        if (event.type === "completion") return;
      }
      if (events.length > 0) {
        quietSince = steadyTime(this.#clock);
        continue;
      }
      // After `hasEnded` the log is read once more, since an operation ends a moment before its last event is written.
      if (!options.follow || hadEnded) return;
      // The wait begins before `hasEnded`, so that an event appended meanwhile is noticed at once.
      const more = this.#wait(operation, options.signal);
      hadEnded = await options.hasEnded();
      await more;
      if (steadyTime(this.#clock) - quietSince >= options.idleMilliseconds) {
        quietSince = steadyTime(this.#clock);
        yield undefined;
      }
    }
  }

  /** Waits until this process appends an event, or for the poll interval. */
  #wait(operation: string, signal: AbortSignal): Promise<void> {
    const followers = this.#followers.get(operation) ?? new Set();
    this.#followers.set(operation, followers);
    return new Promise((resolve) => {
      const stop = new AbortController();
      const wake = () => {
        followers.delete(wake);
        if (followers.size === 0) this.#followers.delete(operation);
        signal.removeEventListener("abort", wake);
        stop.abort();
        resolve();
      };
      followers.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      this.#clock.sleep(100, stop.signal).then(wake, () => {});
    });
  }

  /** Returns the next ID of a log. Ends a line that a killed process left unfinished. */
  #resume(operation: string): number {
    using reader = new LineReader(this.#path(operation));
    let last = 0;
    for (let events = parseLines(reader.next()); events.length > 0; events = parseLines(reader.next())) {
      last = events.at(-1)?.id ?? last;
    }
    if (reader.hasUnfinishedLine()) appendText(this.#path(operation), "\n");
    return last + 1;
  }

  #path(operation: string): string {
    return eventPath(this.#layout, operation);
  }
}

/** Returns the path of an operation's log. */
export function eventPath(layout: Layout, operation: string): string {
  return join(layout.events, `${operation}.ndjson`);
}

function appendText(path: string, text: string): void {
  const descriptor = openSync(path, appending, 0o600);
  try {
    appendFileSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
}

/** Parses events, and skips a line that a killed process left unfinished. */
function parseLines(lines: readonly string[]): OperationEvent[] {
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as OperationEvent];
    } catch {
      return [];
    }
  });
}
