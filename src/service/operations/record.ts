/** Reads an operation's record as a server returns it: any field may be missing, or have another name. */
import { asInteger, asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import type { CapturedOutput, OperationOutcome, ServedTime } from "../service.ts";
import { bytesOf, type LimitHit, type WireBytes } from "../wire/operation.ts";
import { fieldOf, objectIn, placesIn } from "../wire/reader/fields.ts";
import { type ImageCandidates, imagesIn } from "../wire/reader/images.ts";
import { outputIn } from "../wire/reader/outputs.ts";
import {
  isQueuedStatus,
  saysOnlyAnswered,
  saysOnlyEnded,
  saysTimedOut,
  stageOf,
  statusTextIn,
} from "../wire/reader/status.ts";
import {
  endKeys,
  errorKeys,
  exitCodeKeys,
  looseExitCodeKeys,
  processPlaces,
  recordWrappers,
} from "../wire/reader/tables.ts";
import { readLimitHits } from "./outcome.ts";

type EndStatus = OperationOutcome["status"];

export interface OperationView {
  /** `undefined` while it is running. */
  ended: EndStatus | undefined;
  /** True if it has ended, but neither a status nor an exit code says how. */
  endsUnknown: boolean;
  /** True while it is queued. */
  isQueued: boolean;
  /** Set if this version does not know the status. */
  unknownStatus: string | undefined;
  error: string | undefined;
  exitCode: number | undefined;
  timedOut: boolean;
  limitsHit: readonly LimitHit[];
  stdout: CapturedOutput | undefined;
  stderr: CapturedOutput | undefined;
  images: ImageCandidates;
  served: Pick<ServedTime, "since" | "seconds"> | undefined;
  imageBytes: number | undefined;
}

/** `operation`: its id, which is no image. */
export function readOperation(body: unknown, operation?: string): OperationView {
  const record = recordIn(body);
  const states = placesIn(record, processPlaces);
  const statusText = statusTextIn(record) ?? "";
  const stage = stageOf(statusText);
  const exitCode = first(states, readExitCode) ?? readLooseExitCode(record, states);
  const error = first([record, ...states], readError);
  const images = imagesIn(record, operation);
  const timedOut =
    first(states, (state) => (typeof state.timed_out === "boolean" ? state.timed_out : undefined)) ??
    saysTimedOut(statusText);
  const hasResult = exitCode !== undefined || images.results.length + images.others.length > 0;
  const isOver =
    stage === undefined
      ? hasResult || endKeys.some((key) => saysEnd(fieldOf(record, key)))
      : saysOnlyEnded(statusText) && hasResult;
  return {
    ended: isOver ? "SUCCESS" : endOf(stage, { exitCode, isTold: error !== undefined || timedOut }),
    endsUnknown: isOver && exitCode === undefined,
    isQueued: isQueuedStatus(statusText),
    unknownStatus: stage === undefined ? statusText : undefined,
    error: error ?? (stage === "FAILED" && statusText !== "FAILED" ? statusText : undefined),
    exitCode,
    timedOut,
    limitsHit: first(states, (place) => readLimitHits(place.limits_hit)) ?? [],
    stdout: readOutput(record, "stdout"),
    stderr: readOutput(record, "stderr"),
    imageBytes: asNumber(record.image_size),
    images,
    served: readServedTime(record),
  };
}

/** Returns the record without what a service puts around it. Text alone is a status. */
export function recordIn(body: unknown): JsonRecord {
  const record = objectIn(body);
  if (record === undefined) return typeof body === "string" ? { status: body } : {};
  const outer = statusTextIn(record);
  if (outer !== undefined && !saysOnlyAnswered(outer)) return record;
  for (const wrapper of recordWrappers) {
    const inner = objectIn(fieldOf(record, wrapper));
    if (inner !== undefined && statusTextIn(inner) !== undefined) return { ...record, ...inner };
  }
  return record;
}

function endOf(
  stage: ReturnType<typeof stageOf>,
  { exitCode, isTold }: { exitCode: number | undefined; isTold: boolean },
): EndStatus | undefined {
  if (stage === "running" || stage === undefined) return undefined;
  // A service that calls a command failed because of its exit code has run it to its end.
  if (stage === "FAILED" && (exitCode ?? 0) > 0 && !isTold) return "SUCCESS";
  return stage;
}

function saysEnd(value: unknown): boolean {
  return value === true || asText(value) !== undefined || (asNumber(value) ?? 0) > 0;
}

/** A signal means a failure: a service may report no exit code then, or the 0 that WEXITSTATUS returns for a killed process. */
function readExitCode(place: JsonRecord): number | undefined {
  const code = exitCodeKeys.map((key) => readCode(fieldOf(place, key))).find((one) => one !== undefined);
  const number = asInteger(place.signal) ?? 0;
  return number > 0 && (code === undefined || code === 0) ? 128 + number : code;
}

function readCode(value: unknown): number | undefined {
  return asInteger(value) ?? asNumber(value);
}

/** A `code` of 200 or more beside the status is one of HTTP. */
function readLooseExitCode(record: JsonRecord, states: readonly JsonRecord[]): number | undefined {
  for (const place of states) {
    for (const key of looseExitCodeKeys) {
      const code = readCode(fieldOf(place, key));
      if (code !== undefined && code >= 0 && code <= (place === record ? 199 : 255)) return code;
    }
  }
  return undefined;
}

function readServedTime({ created_at, duration }: JsonRecord): OperationView["served"] {
  const [since, seconds] = [Date.parse(asText(created_at) ?? ""), asNumber(duration)];
  return Number.isNaN(since) || seconds === undefined || seconds < 0 ? undefined : { since, seconds };
}

function readOutput(record: JsonRecord, stream: "stdout" | "stderr"): CapturedOutput | undefined {
  const bytes = outputIn(record, stream);
  return bytes && { text: decodeText(bytes), truncated: bytes.truncated === true };
}

const maxErrorCharacters = 64 * 1024;

function readError(record: JsonRecord): string | undefined {
  for (const key of errorKeys) {
    const value = fieldOf(record, key);
    const text = asText(value) ?? asText(asRecord(value)?.message) ?? asText(asRecord(value)?.error);
    if (text !== undefined) return text.slice(0, maxErrorCharacters);
  }
  return undefined;
}

function first<T>(places: readonly JsonRecord[], read: (place: JsonRecord) => T | undefined): T | undefined {
  for (const place of places) {
    const value = read(place);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Decodes output from the wire: base64 is arbitrary bytes, decoded as UTF-8 with replacement across chunk borders. */
export interface OutputDecoder {
  push(bytes: WireBytes): string;
  /** Returns the replacement of an unfinished character at the very end. */
  end(): string;
}

export function createOutputDecoder(): OutputDecoder {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    push: (bytes) => decoder.decode(bytesOf(bytes), { stream: true }),
    end: () => decoder.decode(),
  };
}

function decodeText(bytes: WireBytes): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(bytes));
}
