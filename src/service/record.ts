/** An operation's record as a server answers it: whatever is missing is missing. */
import { asNumber, asRecord, asText, type JsonRecord } from "./json.ts";
import { decodeBytes } from "./output.ts";
import type { CapturedOutput, OperationOutcome } from "./service.ts";
import { operationStatuses } from "./types.ts";

type EndStatus = OperationOutcome["status"];

export interface OperationView {
  /** `undefined`: still running. */
  ended: EndStatus | undefined;
  /** Set where the status is none that this version knows. */
  unknownStatus: string | undefined;
  error: string | undefined;
  exitCode: number | undefined;
  timedOut: boolean;
  stdout: CapturedOutput | undefined;
  stderr: CapturedOutput | undefined;
  image: string | undefined;
}

export function readOperation(body: unknown): OperationView {
  const record = asRecord(body) ?? {};
  const result = asRecord(record.result) ?? {};
  const places = outputPlaces(record);
  const states = places
    .flatMap((place) => [asRecord(place.state), place])
    .filter((place) => place !== undefined);
  const statusText = asText(record.status) ?? "";
  const status = operationStatuses.find((known) => known === statusText.toUpperCase());
  return {
    ended: status === "SUCCESS" || status === "FAILED" || status === "CANCELLED" ? status : undefined,
    unknownStatus: status === undefined ? statusText : undefined,
    error: errorText(record.error),
    exitCode: first(states, (state) => asNumber(state.exit_code)),
    timedOut:
      first(states, (state) => (typeof state.timed_out === "boolean" ? state.timed_out : undefined)) ?? false,
    stdout: first(places, (place) => readOutput(place.stdout)),
    stderr: first(places, (place) => readOutput(place.stderr)),
    image: asText(record.result_image_uuid) ?? asText(result.image) ?? asText(asRecord(result.image)?.uuid),
  };
}

/** Where the process's result may stand; older servers are flatter. */
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
    text: decodeBytes({ value: bytes.value, encoding: asText(bytes.encoding) ?? "ascii" }),
    truncated: bytes.truncated === true,
  };
}

function errorText(error: unknown): string | undefined {
  return asText(error) ?? asText(asRecord(error)?.message) ?? asText(asRecord(error)?.error);
}

function first<T>(places: readonly JsonRecord[], read: (place: JsonRecord) => T | undefined): T | undefined {
  for (const place of places) {
    const value = read(place);
    if (value !== undefined) return value;
  }
  return undefined;
}
