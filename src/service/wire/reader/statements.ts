/** Reads one value of a response as a statement about an operation: that it is running, or that it has ended, and how. */
import { asNumber, asRecord } from "../../http/json.ts";
import { isEnd, type OperationStage, stageOf, stageOfKey } from "./status.ts";
import {
  answered,
  conclusionKeys,
  ended,
  ends,
  errors,
  exits,
  fillers,
  images,
  messages,
  milestones,
  names,
  nothings,
  operationNouns,
  others,
  outputs,
  progresses,
  results,
  sources,
  statusKeys,
  statusWords,
  stored,
  succeeded,
  times,
} from "./vocabulary.ts";
import { flagIn, type Leaf } from "./walk.ts";
import { hasAny, hasOnly, wordsOf } from "./words.ts";

/** `idle`: it does not run, if it ever has. */
export interface OperationStatement {
  stage: OperationStage | "idle";
  /** True for a word that may only mean that the service has answered. */
  isWeak: boolean;
  /** True if it means no end where something says that there is none yet. */
  isDoubtful: boolean;
  leaf: Leaf;
}

/** False for values about other things: a worker, the image that it starts from. */
export function isOfOperation({ key, around }: Leaf): boolean {
  return ![key, ...around].some(
    (words) => hasAny(words, others) || (hasAny(words, sources) && hasAny(words, images)),
  );
}

/** `isWrapped`: the answer has the operation in an object of its own, so that its own status need not be the operation's. */
export function statementIn(leaf: Leaf, isWrapped: boolean): OperationStatement | undefined {
  const stage = stageIn(leaf);
  if (stage === undefined) return undefined;
  const isImages = leaf.around.some((words) => hasAny(words, images));
  // An image that is active is there; one that is being saved is not.
  if (isImages && (stage === "queued" || stage === "running")) {
    const isMoving = typeof leaf.value === "string" && /ing$/i.test(leaf.value);
    if (!isMoving) return undefined;
  }
  const words = meant(leaf);
  const isSure = isStatus(leaf) && !isWrapped && !hasAny(words, okay);
  const isWeak = stage === "succeeded" && hasOnly(words, answered) && !isSure;
  const isDoubtful = hasOnly(words, answered) || (stage === "failed" && !isStatus(leaf));
  return { stage, isWeak, isDoubtful, leaf };
}

const okay: ReadonlySet<string> = new Set(["ok", "okay"]);

/** The words that say it: of a status its value, of a flag its key. */
function meant({ key, value }: Leaf): readonly string[] {
  return typeof value === "string" && flagIn(value) === undefined
    ? wordsOf(value)
    : key.filter((word) => !particles.has(word));
}

function stageIn(leaf: Leaf): OperationStage | "idle" | undefined {
  const { key, value } = leaf;
  const flag = flagIn(value);
  if (flag !== undefined) return leaf.isNamed && !flag ? undefined : stageOfFlag(key, flag);
  if (isEndTime(leaf)) return timeIn(value) === "real" ? "ended" : undefined;
  if (isErrorKey(key)) return isNothing(value) ? undefined : "failed";
  if (typeof value === "string") return stageOfText(leaf, value);
  if (typeof value === "number") return stageOfCount(key, value);
  const record = asRecord(value);
  return record === undefined ? undefined : stageOfObject(key, record);
}

/** `error`, `error_message`, `last_failure`; not `on_error`. */
export function isErrorKey(key: readonly string[]): boolean {
  return hasAny(key, errors) && hasOnly(key, errorWords);
}

const errorWords: ReadonlySet<string> = new Set([
  ...[errors, messages, operationNouns, statusWords, exits].flatMap((set) => [...set]),
  ...["code", "type", "kind", "name", "info", "string", "status"],
]);

const particles: ReadonlySet<string> = new Set(["is", "has", "was", "been"]);

/** `done: false` goes on, `success: false` has failed. `accepted: true` stays true. */
function stageOfFlag(key: readonly string[], flag: boolean): OperationStage | "idle" | undefined {
  const words = key.filter((word) => !particles.has(word));
  if (hasAny(words, milestones)) return undefined;
  const stage = stageOfKey(words);
  if (stage === undefined || flag) return stage;
  if (hasAny(words, succeeded)) return "failed";
  if (hasAny(words, ended) || hasAny(words, stored)) return "running";
  return stage === "running" || stage === "queued" ? "idle" : undefined;
}

function stageOfText(leaf: Leaf, value: string): OperationStage | undefined {
  const { key } = leaf;
  if (isStatus(leaf)) return stageOf(value);
  if ([outputs, messages, names, images].some((set) => hasAny(key, set))) return undefined;
  // Another key about the operation: `{"job": "finished"}`.
  const isAbout = hasOnly(key, aboutOperation);
  return isAbout && wordsOf(value).length <= 2 && !/\s/.test(value) ? stageOf(value) : undefined;
}

const aboutOperation: ReadonlySet<string> = new Set([
  ...[
    operationNouns,
    results,
    ends,
    progresses,
    exits,
    conclusionKeys,
    statusKeys,
    fillers,
    statusWords,
  ].flatMap((set) => [...set]),
]);

/** True for a value under a key of a status, or the name of an object under one. */
export function isStatus({ key, around }: Pick<Leaf, "key" | "around">): boolean {
  if (hasAny(key, exits) && !hasAny(key, conclusionKeys)) return false;
  if (hasAny(key, statusKeys) || hasAny(key, conclusionKeys)) return !hasAny(key, answerKeys);
  return hasOnly(key, nameKeys) && hasAny(around.at(-1) ?? [], statusKeys);
}

/** `status_code` and `http_status` are the answer's. */
const answerKeys: ReadonlySet<string> = new Set(["code", "http"]);
const nameKeys: ReadonlySet<string> = new Set(["name", "value", "type", "kind", "label", "text", "id"]);

/** `{"failed": 1, "active": 0}` */
function stageOfCount(key: readonly string[], count: number): OperationStage | undefined {
  if (count <= 0 || hasAny(key, milestones) || key.length > 2) return undefined;
  const stage = stageOfKey(key);
  return stage === "failed" || stage === "running" ? stage : undefined;
}

/** `{"running": {}}`, `{"terminated": {"exitCode": 0}}` */
function stageOfObject(key: readonly string[], record: Record<string, unknown>): OperationStage | undefined {
  if (hasAny(key, milestones)) return undefined;
  const stage = stageOfKey(key);
  return stage === "failed" && isNothing(record) ? undefined : stage;
}

/** True if a value says that it has succeeded: `success: true` in the same object as the end, or further in. */
export function reportsSuccess(
  { stage, isWeak, leaf }: OperationStatement,
  end: OperationStatement,
): boolean {
  return stage === "succeeded" && (!isWeak || leaf.depth >= end.leaf.depth);
}

/** True if a value says that there is no error: empty, 0, `none`, or nothing but that. */
export function isNothing(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0) return true;
  if (typeof value === "string") return value.trim() === "" || hasOnly(wordsOf(value), nothings);
  if (Array.isArray(value)) return value.every(isNothing);
  return typeof value === "object" && Object.values(value).every(isNothing);
}

/** `finished_at`, `end_time`; also `finished` with a time. */
function isEndTime({ key, value }: Pick<Leaf, "key" | "value">): boolean {
  if (!hasAny(key, ends) || hasAny(key, statusKeys)) return false;
  if (hasAny(key, times)) return true;
  return hasOnly(key, ends) && typeof value === "string" && timeIn(value) !== "none";
}

/** An empty time is 0, the year 1, or nothing. */
function timeIn(value: unknown): "real" | "empty" | "none" {
  const number = asNumber(value);
  if (number !== undefined) return number >= earliestSeconds ? "real" : "empty";
  if (value === null || value === "") return "empty";
  const time =
    typeof value === "string" && /^\d{4}-\d\d-\d\d|^\w{3}, \d/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) return typeof value === "string" && /^\d{10,}/.test(value) ? "real" : "none";
  return time >= earliestSeconds * 1000 ? "real" : "empty";
}

/** September 2001. */
const earliestSeconds = 1e9;

/** True for a value that says, if not clearly, that there is no end yet. */
export function lacksEnd(leaf: Leaf): boolean {
  const { key, value } = leaf;
  if (isEndTime(leaf)) return timeIn(value) === "empty";
  if (value === null) return hasAny(key, conclusionKeys) || hasOnly(key, succeeded);
  if (!hasAny(key, progresses)) return false;
  const amount = asNumber(value);
  return amount !== undefined && amount >= 0 && amount < 100 && amount !== 1;
}

/** True for what came of it, in a word that is not known. */
export function isUnknownConclusion({ key, value }: Leaf): boolean {
  return (
    hasAny(key, conclusionKeys) && typeof value === "string" && value !== "" && stageOf(value) === undefined
  );
}

export function isEndOf({ stage }: OperationStatement): boolean {
  return stage !== "idle" && isEnd(stage);
}
