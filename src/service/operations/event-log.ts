/** What an operation's events have told so far: a pure accumulation. */
import { parseBoundedJson } from "../http/bounded-json.ts";
import { asId, asNumber, asRecord, asText } from "../http/json.ts";
import type { CapturedOutput, EventListener, OutputChunk } from "../service.ts";
import { bytesOf, createOutputDecoder, type OutputDecoder } from "./output.ts";

/** `spid` of the command. */
const mainProcess = 1;

type StreamName = OutputChunk["stream"];

/** A frame of the stream, as the parser gives it. */
export interface EventFrame {
  id?: string | undefined;
  event?: string | undefined;
  data: string;
}

export interface EventLog {
  /** For `Last-Event-Id`. */
  readonly lastId: string | undefined;
  /** `completion` was seen. */
  readonly completed: boolean;
  /** The main process has ended: `completion` is due. */
  readonly exited: boolean;
  /**
   * Answers the output that the frame brought, up to what is kept of a stream. Frames seen before are dropped. `onBytes`
   * of the listener hears of all output.
   */
  add(frame: EventFrame): OutputChunk | undefined;
  /** The last, unfinished character of each stream. */
  end(): OutputChunk[];
  /** The output so far; `whole` where nothing is missing of it. */
  output(stream: StreamName): { text: string; whole: boolean };
}

interface Stream {
  decoder: OutputDecoder;
  parts: string[];
  characters: number;
  truncated: boolean;
}

/** Bytes of one stream: somewhat more than any request asks a service to keep (see operation.ts and mark.ts). */
const maxCharacters = 32 * 1024 * 1024;

export function createEventLog(listener: EventListener = {}): EventLog {
  const streams: Record<StreamName, Stream> = { stdout: newStream(), stderr: newStream() };
  let lastId: string | undefined;
  let lastNumber: number | undefined;
  let skipped = false;
  let completed = false;
  let exited = false;

  function take(stream: StreamName, text: string): OutputChunk | undefined {
    const kept = streams[stream];
    const part = text.slice(0, maxCharacters - kept.characters);
    if (part.length < text.length) kept.truncated = true;
    if (part === "") return undefined;
    kept.parts.push(part);
    kept.characters += part.length;
    return { stream, text: part };
  }

  /** False for a frame that was seen before. A gap in the numbers means that events were lost. */
  function isNew(id: string | undefined): boolean {
    if (id === undefined) return true;
    const number = /^\d+$/.test(id) ? Number(id) : undefined;
    if (number !== undefined && lastNumber !== undefined) {
      if (number <= lastNumber) return false;
      if (number > lastNumber + 1) skipped = true;
    } else if (id === lastId) return false;
    lastId = id;
    lastNumber = number ?? lastNumber;
    return true;
  }

  return {
    get lastId() {
      return lastId;
    },
    get completed() {
      return completed;
    },
    get exited() {
      return exited;
    },
    add(frame) {
      const event = asRecord(parse(frame.data));
      const number = asNumber(event?.id);
      if (!isNew(asId(frame.id) ?? (number === undefined ? undefined : String(number)))) return undefined;
      const type = asText(event?.type) ?? frame.event;
      const data = asRecord(event?.data) ?? {};
      // What was started beside the command has events of its own; some services say 0 where the command itself is meant.
      if ((asNumber(event?.spid) ?? mainProcess) > mainProcess) return undefined;
      switch (type) {
        case "stdout":
        case "stderr": {
          if (typeof data.value !== "string") return undefined;
          const bytes = { value: data.value, encoding: asText(data.encoding) ?? "ascii" };
          listener.onBytes?.(type, bytesOf(bytes));
          return take(type, streams[type].decoder.push(bytes));
        }
        case "progress":
          listener.onProgress?.(asText(data.message) ?? "");
          return undefined;
        case "truncated":
          if (data.stream === "stdout" || data.stream === "stderr") streams[data.stream].truncated = true;
          return undefined;
        case "exit":
          exited = true;
          return undefined;
        case "completion":
          completed = true;
          return undefined;
        default:
          return undefined;
      }
    },
    end() {
      const names: StreamName[] = ["stdout", "stderr"];
      return names
        .map((name) => take(name, streams[name].decoder.end()))
        .filter((chunk) => chunk !== undefined);
    },
    output(stream) {
      const { parts, truncated } = streams[stream];
      return { text: parts.join(""), whole: completed && !skipped && !truncated };
    },
  };
}

/**
 * The fuller of what the events brought and what the record holds. It is called truncated only where neither has
 * everything.
 */
export function mergeOutput(
  log: { text: string; whole: boolean },
  record: CapturedOutput | undefined,
): CapturedOutput {
  if (record === undefined) return { text: log.text, truncated: !log.whole && log.text !== "" };
  if (!record.truncated && (!log.whole || record.text.length >= log.text.length)) return record;
  if (log.whole && log.text.length >= record.text.length) return { text: log.text, truncated: false };
  return { text: log.text.length > record.text.length ? log.text : record.text, truncated: true };
}

function newStream(): Stream {
  return { decoder: createOutputDecoder(), parts: [], characters: 0, truncated: false };
}

function parse(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
