/** The events of an operation so far, accumulated. Pure, except for calls of the listener. */
import { parseBoundedJson } from "../http/bounded-body.ts";
import { asId, asInteger, asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import type { CapturedOutput, EventListener, OutputChunk } from "../service.ts";
import { bytesOf, mainProcessSpid, type OperationKind } from "../wire/operation.ts";
import { createOutputDecoder, type OutputDecoder } from "./record.ts";

type StreamName = OutputChunk["stream"];

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

interface LoggedOutput {
  /** True if nothing is missing. */
  whole: boolean;
  characters: number;
  /** Empty if the text is not held, as `isHeld` says. */
  text(): string;
  isHeld: boolean;
  /** True if `text` begins with this output. */
  begins(text: string): boolean;
}

interface Stream {
  decoder: OutputDecoder;
  /** A digest is enough for a listener that takes all output: it tells whether the record has the same output. */
  held: { parts: string[] } | { digest: Bun.CryptoHasher };
  characters: number;
  truncated: boolean;
}

/** Characters of one stream: somewhat more than any request asks a service to keep (see operation.ts and request-id.ts). */
const maxCharacters = 32 * 1024 * 1024;

export function createReceivedEvents(listener: EventListener = {}): ReceivedEvents {
  const streams: Record<StreamName, Stream> = { stdout: newStream(listener), stderr: newStream(listener) };
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

  function take(stream: StreamName, text: string): OutputChunk | undefined {
    const kept = streams[stream];
    const part = text.slice(0, maxCharacters - kept.characters);
    if (part.length < text.length) kept.truncated = true;
    if (part === "") return undefined;
    if ("parts" in kept.held) kept.held.parts.push(part);
    else kept.held.digest.update(part);
    kept.characters += part.length;
    return { stream, text: part };
  }

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
        return take(type, streams[type].decoder.push(bytes));
      }
      case "init":
        listener.onStart?.();
        return undefined;
      case "progress":
        (data.is_warning === true ? listener.onWarning : listener.onProgress)?.(asText(data.message) ?? "");
        return undefined;
      case "truncated":
        if (data.stream === "stdout" || data.stream === "stderr") streams[data.stream].truncated = true;
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
        beginsWithFirst && completed && !skipped && !streams.stdout.truncated && !streams.stderr.truncated
      );
    },
    end() {
      const names: StreamName[] = ["stdout", "stderr"];
      return names
        .map((name) => take(name, streams[name].decoder.end()))
        .filter((chunk) => chunk !== undefined);
    },
    output(stream) {
      const { held, characters, truncated } = streams[stream];
      const whole = completed && !skipped && !truncated;
      if ("parts" in held) {
        const text = () => held.parts.join("");
        return { whole, characters, text, isHeld: true, begins: (other) => other.startsWith(text()) };
      }
      const digest = held.digest.copy().digest("hex");
      const begins = (other: string) =>
        new Bun.CryptoHasher(digestName).update(other.slice(0, characters)).digest("hex") === digest;
      return { whole, characters, text: () => "", isHeld: false, begins };
    },
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

/**
 * Returns the fuller output of the events and the record. If the events' output is not held here, returns only what the record
 * has beyond it. `truncated` is true only if neither has everything.
 */
export function mergeOutput(log: LoggedOutput, record: CapturedOutput | undefined): CapturedOutput {
  const { whole, characters, text, isHeld } = log;
  if (record === undefined) return { text: text(), truncated: !whole && characters > 0 };
  const length = record.text.length;
  const isRecordWhole = !record.truncated && (!whole || length >= characters);
  const isLogWhole = !isRecordWhole && whole && characters >= length;
  const truncated = !isRecordWhole && !isLogWhole;
  if (isLogWhole || (!isRecordWhole && characters > length)) return { text: text(), truncated };
  if (isHeld) return { text: record.text, truncated };
  // If lost events have left a gap, all of the record is passed on.
  return { text: log.begins(record.text) ? record.text.slice(characters) : record.text, truncated };
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

const digestName = "sha256";

function newStream({ onRest }: EventListener): Stream {
  const held = onRest === undefined ? { parts: [] } : { digest: new Bun.CryptoHasher(digestName) };
  return { decoder: createOutputDecoder(), held, characters: 0, truncated: false };
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
