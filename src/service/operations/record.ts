/** Reads an operation's record as a server returns it: any field may be missing. */
import { asId, asInteger, asNumber, asRecord, asText, idIn, type JsonRecord } from "../http/json.ts";
import type { CapturedOutput, OperationOutcome, ServedTime } from "../service.ts";
import { activeStatuses, type LimitHit } from "../wire/operation.ts";
import { readLimitHits } from "./limits.ts";
import { decodeText } from "./output.ts";

type EndStatus = OperationOutcome["status"];

export interface OperationView {
  /** `undefined` while it is running. */
  ended: EndStatus | undefined;
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
  image: string | undefined;
  served: Pick<ServedTime, "since" | "seconds"> | undefined;
  imageBytes: number | undefined;
}

export function readOperation(body: unknown): OperationView {
  const record = asRecord(body) ?? {};
  const result = asRecord(record.result) ?? {};
  const places = outputPlaces(record);
  const states = places
    .flatMap((place) => [asRecord(place.state), place])
    .filter((place) => place !== undefined);
  const statusText = asText(record.status) ?? "";
  const word = wordOf(statusText);
  const stage = stages.get(word);
  return {
    ended: stage === "running" ? undefined : stage,
    isQueued: queued.includes(word),
    unknownStatus: stage === undefined ? statusText : undefined,
    error:
      errorText(record.error) ?? (stage === "FAILED" && statusText !== "FAILED" ? statusText : undefined),
    exitCode: first(states, readExitCode),
    timedOut:
      first(states, (state) => (typeof state.timed_out === "boolean" ? state.timed_out : undefined)) ??
      /^TIMED?_?OUT$/i.test(statusText),
    limitsHit: first(places, (place) => readLimitHits(place.limits_hit)) ?? [],
    stdout: first(places, (place) => readOutput(place.stdout)),
    stderr: first(places, (place) => readOutput(place.stderr)),
    imageBytes: asNumber(record.image_size),
    image: asId(record.result_image_uuid) ?? asId(result.image) ?? idIn(asRecord(result.image)),
    served: readServedTime(record),
  };
}

/** A signal means a failure: a service may report no exit code then, or the 0 that WEXITSTATUS returns for a killed process. */
function readExitCode({ exit_code, signal }: JsonRecord): number | undefined {
  const code = asInteger(exit_code) ?? asNumber(exit_code);
  const number = asInteger(signal) ?? 0;
  return number > 0 && (code === undefined || code === 0) ? 128 + number : code;
}

function wordOf(status: string): string {
  return status.toUpperCase().replaceAll(/[ -]/g, "_");
}

/** Returns the protocol's word for a status, or the service's own if its meaning is not known. */
export function usualStatus(status: string): string {
  const word = wordOf(status);
  const stage = stages.get(word);
  if (stage !== "running") return stage ?? status;
  return (
    activeStatuses.find((active) => active === word) ?? (queued.includes(word) ? "PENDING" : "EXECUTING")
  );
}

function readServedTime({ created_at, duration }: JsonRecord): OperationView["served"] {
  const [since, seconds] = [Date.parse(asText(created_at) ?? ""), asNumber(duration)];
  return Number.isNaN(since) || seconds === undefined || seconds < 0 ? undefined : { since, seconds };
}

const queued = ["PENDING", "ASSIGNED", "QUEUED", "CREATED", "SCHEDULED"];

/** Meanings of statuses: the protocol's own words, and those of other servers. */
const stages: ReadonlyMap<string, EndStatus | "running"> = new Map(
  Object.entries({
    running: [
      ...queued,
      "EXECUTING",
      "STARTING",
      "STARTED",
      "RUNNING",
      "PROCESSING",
      "IN_PROGRESS",
      "ACTIVE",
      "CANCELLING",
    ],
    SUCCESS: [
      "SUCCESS",
      "SUCCEEDED",
      "SUCCESSFUL",
      "COMPLETED",
      "COMPLETE",
      "DONE",
      "FINISHED",
      "EXITED",
      "OK",
    ],
    FAILED: ["FAILED", "FAILURE", "ERROR", "ERRORED", "REJECTED", "TIMEOUT", "TIMED_OUT", "EXPIRED"],
    CANCELLED: ["CANCELLED", "CANCELED", "ABORTED", "STOPPED", "KILLED", "TERMINATED"],
  } satisfies Record<EndStatus | "running", string[]>).flatMap(([stage, words]) =>
    words.map((word) => [word, stage as EndStatus | "running"] as const),
  ),
);

/** Returns the places where the process's result may be; records of older servers are flatter. */
export function outputPlaces(body: unknown): JsonRecord[] {
  const record = asRecord(body);
  const places = [asRecord(asRecord(record?.metadata)?.result), asRecord(record?.result), record];
  return places.filter((place) => place !== undefined);
}

function readOutput(value: unknown): CapturedOutput | undefined {
  if (typeof value === "string") return { text: value, truncated: false };
  const bytes = asRecord(value);
  if (typeof bytes?.value !== "string") return undefined;
  return {
    text: decodeText({ value: bytes.value, encoding: asText(bytes.encoding) ?? "ascii" }),
    truncated: bytes.truncated === true,
  };
}

const maxErrorCharacters = 64 * 1024;

function errorText(error: unknown): string | undefined {
  const text = asText(error) ?? asText(asRecord(error)?.message) ?? asText(asRecord(error)?.error);
  return text?.slice(0, maxErrorCharacters);
}

function first<T>(places: readonly JsonRecord[], read: (place: JsonRecord) => T | undefined): T | undefined {
  for (const place of places) {
    const value = read(place);
    if (value !== undefined) return value;
  }
  return undefined;
}
