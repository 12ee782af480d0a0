/** Reads an operation's record as a server returns it: any field may be missing, or have another name. */
import { asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import type { CapturedOutput, OperationOutcome, ServedTime } from "../service.ts";
import {
  bytesOf,
  isTerminal,
  type LimitHit,
  type OperationKind,
  type OperationStatus,
  operationKinds,
  operationStatuses,
  type WireBytes,
} from "../wire/operation.ts";
import { type Evidence, evidenceIn, shownResponse, statusOf } from "../wire/reader/evidence.ts";
import { type ImageCandidates, imagesIn } from "../wire/reader/ids.ts";
import { outputIn, unreadOutputIn } from "../wire/reader/outputs.ts";
import { isStatus } from "../wire/reader/statements.ts";
import { isOnlyAnswered } from "../wire/reader/status.ts";
import { envelopes, operationNouns } from "../wire/reader/vocabulary.ts";
import { hasAny, wordsOf } from "../wire/reader/words.ts";
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
  /** The place of text that may be output, if none was found. */
  unreadOutput: string | undefined;
  images: ImageCandidates;
  served: Pick<ServedTime, "since" | "seconds"> | undefined;
  imageBytes: number | undefined;
  /** Returns the answer in one line, for a message. */
  shown: () => string;
}

/** Data of an operation from its request. */
export interface KnownOperation {
  /** Its id, which is not an image's. */
  id?: string | undefined;
  kind?: OperationKind | undefined;
  /** The images that the request named. */
  named?: readonly string[] | undefined;
}

export function readOperation(answer: unknown, known: KnownOperation = {}): OperationView {
  const body = withoutRequest(answer);
  const record = recordIn(body);
  const evidence = evidenceIn(body);
  const images = imagesIn(body, known.id);
  const { goesOn, status, exit } = evidence;
  const isOwn = isOfPublicApi(record);
  const isEnded = isOwn ? isTerminal(record.status) : isOver(body, evidence, images, known);
  const ending = !isEnded ? undefined : isOwn ? statedEnding(record, evidence) : endingOf(evidence, known);
  const shown = () => shownResponse(body);
  const [stdout, stderr] = [readOutput(body, "stdout"), readOutput(body, "stderr")];
  return {
    ended: ending?.ended,
    endsUnknown: ending?.isUnknown === true,
    isQueued: goesOn?.stage === "queued",
    unknownStatus:
      isOwn || goesOn !== undefined || (ending !== undefined && !ending.isUnknown)
        ? undefined
        : (status ?? ""),
    error: ending === undefined || isOwn ? evidence.error : errorOf(evidence, ending, shown),
    exitCode: exit.code,
    timedOut: evidence.against?.stage === "timed out",
    limitsHit: readLimitHits(asRecord(asRecord(record.metadata)?.result)?.limits_hit) ?? [],
    stdout,
    stderr,
    unreadOutput: stdout === undefined && stderr === undefined ? unreadOutputIn(body) : undefined,
    imageBytes: asNumber(record.image_size),
    images,
    served: readServedTime(record),
    shown,
  };
}

/** In the public API, `metadata` is the request, with the result in it. */
function withoutRequest(body: unknown): unknown {
  const record = asRecord(body);
  const metadata = asRecord(record?.metadata);
  return record !== undefined && isOfPublicApi(record) && metadata !== undefined
    ? { ...record, metadata: { result: metadata.result } }
    : body;
}

/** True for a record of the public API, whose status means what that API says: nothing else in it is asked how it ended. */
function isOfPublicApi(record: JsonRecord): record is JsonRecord & { status: OperationStatus } {
  const { kind, status } = record;
  return operationKinds.some((one) => one === kind) && operationStatuses.some((one) => one === status);
}

function statedEnding({ status }: { status: OperationStatus }, { exit, error, against }: Evidence): Ending {
  if (status !== "FAILED")
    return { ended: status === "CANCELLED" ? "CANCELLED" : "SUCCESS", isUnknown: false };
  const isTold = error !== undefined || against?.stage === "timed out";
  return { ended: (exit.code ?? 0) > 0 && !isTold ? "SUCCESS" : "FAILED", isUnknown: false };
}

/** Returns true if the response has evidence of an end, and none that the operation is running. An exit code of 0 alone proves nothing. */
function isOver(
  body: unknown,
  { goesOn, end, isWeak, lacksEnd, idle, exit }: Evidence,
  images: ImageCandidates,
  { kind, named }: KnownOperation,
): boolean {
  if (goesOn !== undefined) return false;
  // A machine may be ready to begin.
  const isEnd = end !== undefined && !(end.stage === "stored" && kind === "instance");
  if ((isEnd && !isWeak) || (exit.code ?? 0) > 0) return true;
  if (lacksEnd || exit.isEmpty) return false;
  const candidates = named === undefined ? images.results : [...images.results, ...images.others];
  const hasImage = candidates.some((image) => named?.includes(image) !== true);
  const hasOutput = outputIn(body, "stdout") !== undefined;
  if (isEnd) return exit.code !== undefined || hasImage || hasOutput;
  return exit.code === 0 ? hasImage || idle !== undefined : kind === "image_import" && hasImage;
}

interface Ending {
  ended: EndStatus;
  /** True if nothing says how. */
  isUnknown: boolean;
}

/** Returns how an operation has ended: by the exit code of its command, if there is one, else as a success if nothing contradicts that. */
function endingOf(evidence: Evidence, { kind }: KnownOperation): Ending {
  const { end, against, unknownConclusion, exit, error, success } = evidence;
  const code = exit.code ?? 0;
  if (code > 0) return { ended: endWithCode(evidence), isUnknown: false };
  if (against?.stage === "cancelled") return { ended: "CANCELLED", isUnknown: false };
  if (against !== undefined || code < 0 || unknownConclusion !== undefined)
    return { ended: "FAILED", isUnknown: false };
  if (exit.code === 0 || kind === "image_import") return { ended: "SUCCESS", isUnknown: false };
  if (end?.stage === "stopped") return { ended: "CANCELLED", isUnknown: false };
  const isHow = success !== undefined || end?.stage === "stored";
  const isWord = end !== undefined && typeof end.leaf.value === "string" && isStatus(end.leaf);
  return { ended: "SUCCESS", isUnknown: !isHow && !(isWord && !exit.isEmpty && error === undefined) };
}

/** Returns the end of a command with an exit code above 0: it has run to its end, even if the service therefore calls it failed. */
function endWithCode({ against, error }: Evidence): EndStatus {
  if (against?.stage === "cancelled") return "CANCELLED";
  const isTold = error !== undefined || against?.stage === "timed out";
  return against !== undefined && isStatus(against.leaf) && isTold ? "FAILED" : "SUCCESS";
}

/** Returns the error. It names the evidence against a success and the response, unless the service itself says what has failed. */
function errorOf(
  { against, unknownConclusion, exit, end, error, reason, status }: Evidence,
  { ended }: Ending,
  shown: () => string,
): string | undefined {
  if (ended !== "FAILED") return error;
  const isPlain =
    against !== undefined && isStatus(against.leaf) && (end === against || end?.stage === against.stage);
  if (isPlain) return error ?? reason ?? (status === "FAILED" ? undefined : status);
  const leaf = against?.leaf ?? unknownConclusion;
  const what =
    leaf === undefined ? `the exit code is ${exit.code}` : `${leaf.path} is ${JSON.stringify(leaf.value)}`;
  return `${error ?? what}; the service responded with ${shown()}`;
}

/** Returns the record without an envelope of the service. Text alone is a status. */
export function recordIn(body: unknown): JsonRecord {
  const record = asRecord(Array.isArray(body) ? body[0] : body);
  if (record === undefined) return typeof body === "string" ? { status: body } : {};
  const outer = statusOf(record);
  if (outer !== undefined && !isOnlyAnswered(outer)) return record;
  for (const [name, value] of Object.entries(record)) {
    const words = wordsOf(name);
    const inner = hasAny(words, envelopes) || hasAny(words, operationNouns) ? asRecord(value) : undefined;
    if (inner !== undefined && statusOf(inner) !== undefined) return { ...record, ...inner };
  }
  return record;
}

function readServedTime({ created_at, duration }: JsonRecord): OperationView["served"] {
  const [since, seconds] = [Date.parse(asText(created_at) ?? ""), asNumber(duration)];
  return Number.isNaN(since) || seconds === undefined || seconds < 0 ? undefined : { since, seconds };
}

function readOutput(record: unknown, stream: "stdout" | "stderr"): CapturedOutput | undefined {
  const bytes = outputIn(record, stream);
  return bytes && { text: decodeText(bytes), truncated: bytes.truncated === true };
}

/** Decodes output from the wire: base64 is arbitrary bytes, decoded as UTF-8 with replacement across chunk borders. */
interface OutputDecoder {
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
