import { appendFileSync, closeSync, constants, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { type Clock, steadyTime } from "../../clock.ts";
import { encodeBytes, type OperationEvent, sandboxSpid } from "../../service/wire/operation.ts";
import type { Layout } from "../layout.ts";
import { LineReader } from "./stored-content.ts";

/** Flags with which open(2) neither follows a link nor waits for a pipe in a log's place. */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const appending = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;

/** The time between two reads of a log that another process writes. */
const pollMilliseconds = 100;

/** A log that this process writes. */
interface OpenLog {
  nextId: number;
  bytes: number;
  /** Called with the next event, and without one at the end. */
  followers: Set<(appended: AppendedEvent | undefined) => void>;
}

/** The data of an event; for output, its bytes. */
export type EventData = Record<string, unknown> | Uint8Array;

/** An event. `bytes` are the output's, for a follower in this process that has not fallen behind. */
export type EngineEvent = OperationEvent & { bytes?: Uint8Array };

/** An event with its place in the log. */
interface AppendedEvent {
  event: EngineEvent;
  from: number;
  to: number;
}

/**
 * The events of all operations: one file per operation, one JSON object per line. Events are written as they happen, so that
 * another process can follow them, and they outlive this process. A follower in this process that has read everything else gets
 * the event itself.
 */
export class EventFiles {
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #open = new Map<string, OpenLog>();

  constructor(layout: Layout, clock: Clock) {
    this.#layout = layout;
    this.#clock = clock;
  }

  /** Makes an empty log, so that followers wait for the first event. */
  create(operation: string): void {
    appendText(this.#path(operation), "");
    this.#open.set(operation, { nextId: 1, bytes: 0, followers: new Set() });
  }

  append(operation: string, spid: number, type: string, given: EventData): void {
    const log = this.#open.get(operation) ?? this.#resume(operation);
    const bytes = given instanceof Uint8Array ? given : undefined;
    const data: Record<string, unknown> = given instanceof Uint8Array ? encodeBytes(given) : given;
    const event: OperationEvent = {
      ...{ id: log.nextId, ts: new Date(this.#clock.now()).toISOString() },
      ...{ spid, type, data },
    };
    const text = Buffer.from(`${JSON.stringify(event)}\n`);
    try {
      appendText(this.#path(operation), text);
    } catch (error) {
      this.#close(operation);
      throw error;
    }
    const from = log.bytes;
    log.nextId += 1;
    log.bytes += text.length;
    wake(log, { event: bytes === undefined ? event : { ...event, bytes }, from, to: log.bytes });
  }

  /** Appends an operation's last event. On a full disk it is missing; the operation's record has the outcome anyway. */
  complete(operation: string, data: Record<string, unknown>): void {
    try {
      this.append(operation, sandboxSpid, "completion", data);
    } catch {
      // Followers look at the record.
    }
    this.#close(operation);
  }

  /** Closes a log. The rest of a failed write is found when it is opened again. */
  #close(operation: string): void {
    const log = this.#open.get(operation);
    this.#open.delete(operation);
    if (log !== undefined) wake(log, undefined);
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
  ): AsyncGenerator<EngineEvent | undefined> {
    using reader = new LineReader(this.#path(operation));
    let quietSince = steadyTime(this.#clock);
    let hadEnded = false;
    let next: EngineEvent | undefined;
    while (!options.signal.aborted) {
      const events = next === undefined ? parseLines(reader.next()) : [next];
      next = undefined;
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
      const more = this.#wait(operation, options);
      hadEnded = !this.#open.has(operation) && (await options.hasEnded());
      const appended = await more;
      if (appended?.from === reader.position) {
        reader.position = appended.to;
        next = appended.event;
      } else if (steadyTime(this.#clock) - quietSince >= options.idleMilliseconds) {
        quietSince = steadyTime(this.#clock);
        yield undefined;
      }
    }
  }

  /** Waits for the next event of a log that this process writes. In others it polls. */
  #wait(
    operation: string,
    { idleMilliseconds, signal }: { idleMilliseconds: number; signal: AbortSignal },
  ): Promise<AppendedEvent | undefined> {
    const log = this.#open.get(operation);
    const milliseconds = log === undefined ? pollMilliseconds : idleMilliseconds;
    return new Promise((resolve) => {
      const stop = new AbortController();
      const end = (appended?: AppendedEvent) => {
        log?.followers.delete(end);
        signal.removeEventListener("abort", leave);
        stop.abort();
        resolve(appended);
      };
      const leave = () => end();
      log?.followers.add(end);
      signal.addEventListener("abort", leave, { once: true });
      if (milliseconds < Number.POSITIVE_INFINITY)
        this.#clock.sleep(milliseconds, stop.signal).then(leave, () => {});
    });
  }

  /** Opens the log of a process that was killed. Ends a line that it left unfinished. */
  #resume(operation: string): OpenLog {
    using reader = new LineReader(this.#path(operation));
    let last = 0;
    for (let events = parseLines(reader.next()); events.length > 0; events = parseLines(reader.next())) {
      last = events.at(-1)?.id ?? last;
    }
    if (reader.size > reader.position) appendText(this.#path(operation), "\n");
    const log = { nextId: last + 1, bytes: reader.size, followers: new Set() } satisfies OpenLog;
    this.#open.set(operation, log);
    return log;
  }

  #path(operation: string): string {
    return eventPath(this.#layout, operation);
  }
}

/** Returns the path of an operation's log. */
export function eventPath(layout: Layout, operation: string): string {
  return join(layout.events, `${operation}.ndjson`);
}

function wake(log: OpenLog, appended: AppendedEvent | undefined): void {
  for (const follower of log.followers) follower(appended);
}

function appendText(path: string, text: string | Uint8Array): void {
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
