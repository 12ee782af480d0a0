/** The events of an operation so far, accumulated. Pure, except for calls of the listener. */
import { parseBoundedJson } from "../http/bounded-body.ts";
import { asId, asInteger, asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import type { EventListener, OutputChunk } from "../service.ts";
import { bytesOf, mainProcessSpid, type OperationKind } from "../wire/operation.ts";
import { createCapturedStream, type LoggedOutput, type StreamName } from "./captured-stream.ts";

/** A frame of the stream, as the parser gives it. */
export interface EventFrame {
  id?: string | undefined;
  event?: string | undefined;
  data: string;
}

export interface ReceivedEvents extends Pick<ReplayedEvents, "connect"> {
  /** The value of `Last-Event-Id`. */
  readonly lastId: string | undefined;
  /** True once `completion` was received. */
  readonly completed: boolean;
  /** True once the main process has ended: `completion` is due. */
  readonly exited: boolean;
  /**
   * Adds a frame, and returns its output as far as the stream's limit allows. Frames seen before are dropped. `onBytes` of the
   * listener gets all output.
   */
  add(frame: EventFrame): OutputChunk | undefined;
  /** Returns the last, unfinished character of each stream. */
  end(): OutputChunk[];
  /** Returns the output so far. */
  output(stream: StreamName): LoggedOutput;
  /** True if the numbers of the events prove that these are all events from the first to `completion`, with all output. */
  readonly isWhole: boolean;
  /** The state of the process as its `exit` event reports it, in the form of the record. */
  readonly exitState: JsonRecord | undefined;
  /**
   * Returns the operation's end in the form of its record, without the output; `undefined` if the events do not report all of it.
   * An import has no process whose end they could report.
   */
  record(kind: OperationKind): JsonRecord | undefined;
}

/** An event as far as it is understood. */
interface ReadEvent {
  type: string | undefined;
  data: JsonRecord;
  spid: number;
  ts: string | undefined;
}

export function createReceivedEvents(listener: EventListener = {}): ReceivedEvents {
  const streams = {
    stdout: createCapturedStream("stdout", listener),
    stderr: createCapturedStream("stderr", listener),
  };
  let lastId: string | undefined;
  let lastNumber: number | undefined;
  let beginsWithFirst = false;
  const replayed = createReplayedEvents();
  let skipped = false;
  let completed = false;
  let exited = false;
  let exit: JsonRecord | undefined;
  let completion: JsonRecord | undefined;
  /** When the service sent `completion`, by its own clock. */
  let completedAt: string | undefined;

  /** False for a frame that was seen before. A gap in the numbers means that events were lost. */
  function isNew(id: string | undefined, data: string): boolean {
    const number = id !== undefined && /^\d+$/.test(id) ? Number(id) : undefined;
    if (number === undefined) {
      const kind = replayed.take({ id, data });
      if (kind === "replayed" || (id !== undefined && id === lastId)) return false;
      if (kind === "after a gap") skipped = true;
    } else if (lastNumber !== undefined) {
      if (number <= lastNumber) return false;
      if (number > lastNumber + 1) skipped = true;
    } else beginsWithFirst = number <= 1;
    lastId = id ?? lastId;
    lastNumber = number ?? lastNumber;
    return true;
  }

  /** Processes started beside the command have their own events. Some services send 0 for the command itself. */
  function read({ type, data, spid, ts }: ReadEvent): OutputChunk | undefined {
    if (spid > mainProcessSpid) return undefined;
    switch (type) {
      case "stdout":
      case "stderr": {
        if (typeof data.value !== "string") return undefined;
        const bytes = { value: data.value, encoding: asText(data.encoding) ?? "ascii" };
        listener.onBytes?.(type, bytesOf(bytes));
        return streams[type].push(bytes);
      }
      case "init":
        listener.onStart?.();
        return undefined;
      case "progress":
        (data.is_warning === true ? listener.onWarning : listener.onProgress)?.(asText(data.message) ?? "");
        return undefined;
      case "truncated":
        if (data.stream === "stdout" || data.stream === "stderr") streams[data.stream].truncate();
        return undefined;
      case "exit":
        exit = data;
        exited = true;
        return undefined;
      case "completion":
        completion = data;
        completedAt = ts;
        completed = true;
        return undefined;
      default:
        return undefined;
    }
  }

  return {
    connect: replayed.connect,
    get lastId() {
      return lastId;
    },
    get completed() {
      return completed;
    },
    get exited() {
      return exited;
    },
    get exitState() {
      return stateIn(exit);
    },
    add(frame) {
      const event = asRecord(parse(frame.data));
      const number = asNumber(event?.id);
      if (!isNew(asId(frame.id) ?? (number === undefined ? undefined : String(number)), frame.data))
        return undefined;
      return read({
        type: asText(event?.type) ?? frame.event,
        data: asRecord(event?.data) ?? {},
        spid: asNumber(event?.spid) ?? mainProcessSpid,
        ts: asText(event?.ts),
      });
    },
    get isWhole() {
      return (
        beginsWithFirst && completed && !skipped && !streams.stdout.isTruncated && !streams.stderr.isTruncated
      );
    },
    end: () => [streams.stdout.end(), streams.stderr.end()].filter((chunk) => chunk !== undefined),
    output: (stream) => streams[stream].output(completed && !skipped),
    record(kind) {
      if (skipped || completion === undefined || asId(completion.result_image_uuid) === undefined)
        return undefined;
      if (kind === "instance" && asInteger(exit?.code) === undefined) return undefined;
      const { status, error, result_image_uuid, image_size_bytes: image_size } = completion;
      const metadata = { result: { state: stateIn(exit), limits_hit: exit?.limits_hit } };
      return { status, error, result_image_uuid, image_size, metadata, ...timeOf(completion, completedAt) };
    },
  };
}

/** Returns the time that the operation took in the form of the record. */
function timeOf({ duration_ms }: JsonRecord, completedAt: string | undefined): JsonRecord {
  const [milliseconds, end] = [asNumber(duration_ms), Date.parse(completedAt ?? "")];
  const since = new Date(end - (milliseconds ?? Number.NaN));
  if (milliseconds === undefined || Number.isNaN(since.getTime())) return {};
  return { created_at: since.toISOString(), duration: milliseconds / 1000 };
}

/** Returns the state of the process in the form of the record. */
function stateIn(exit: JsonRecord | undefined): JsonRecord | undefined {
  return exit && { exit_code: exit.code, signal: exit.signal, timed_out: exit.timed_out };
}

function parse(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Recognizes events that a service sends again on a new connection: some ignore `Last-Event-Id` and begin with the first event.
 * Needed only for events without a number.
 */
interface ReplayedEvents {
  /** Has to be called when a connection begins. */
  connect(): void;
  /**
   * Says what an event is. `after a gap`: the service has not begun with the first event, and an event without an id does not show
   * how many are missing. Events that only begin like the earlier ones are recognized after as many as there were: some of those
   * taken for replayed were new.
   */
  take(event: { id: string | undefined; data: string }): "new" | "replayed" | "after a gap";
}

function createReplayedEvents(): ReplayedEvents {
  let first: string | undefined;
  let count = 0;
  /** Hashes of all earlier events, and of those that have come again on this connection. */
  let earlier = 0n;
  let again = 0n;
  /** Events that are still to come again; `undefined` until the first event of the connection. */
  let left: number | undefined = 0;
  return {
    connect() {
      left = count === 0 ? 0 : undefined;
      again = 0n;
    },
    take({ id, data }) {
      const text = `${id ?? ""} ${data}`;
      first ??= text;
      const isNext = left !== undefined;
      left ??= text === first ? count : 0;
      if (left > 0) {
        left -= 1;
        again = Bun.hash.xxHash64(text, again);
        return left > 0 || again === earlier ? "replayed" : "after a gap";
      }
      count += 1;
      earlier = Bun.hash.xxHash64(text, earlier);
      return isNext || id !== undefined ? "new" : "after a gap";
    },
  };
}
