/** The meaning of words for an operation's status, with or without a service's prefix. */
import { activeStatuses } from "../operation.ts";
import {
  answered,
  cancelled,
  ended,
  failed,
  fillers,
  negations,
  queued,
  running,
  stopped,
  stored,
  succeeded,
  timedOut,
} from "./vocabulary.ts";
import { hasAny, hasOnly, wordsOf } from "./words.ts";

/** `ended`: over, but not how. `stopped`: the same, perhaps from outside. `stored`: what it makes is there. */
export type OperationStage =
  | "queued"
  | "running"
  | "ended"
  | "stopped"
  | "stored"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "timed out";

/** The maximum length of a status. */
const maxCharacters = 64;

/**
 * Returns the meaning of a status; `undefined` if this version does not know it. The worst of its words counts. A word may have
 * others before it (`JOB_STATE_SUCCEEDED`); of a sentence, all must be known.
 */
export function stageOf(status: string): OperationStage | undefined {
  const text = status.trim();
  if (text.length > maxCharacters) return undefined;
  const exitCode = exitCodeIn(text);
  const words = wordsOf(exitCode === undefined ? text : text.replace(/[\d(].*$/s, ""));
  const stage = worstOf(words);
  if (stage === undefined) return undefined;
  const isNegated = hasAny(words, negations);
  if (isNegated) return words.includes("started") ? "queued" : isEnded(stage) ? "running" : undefined;
  const isWord = !/\s/.test(text) && [1, 2, 3].some((count) => isWhole(words.slice(-count)));
  return isWord || words.every(isKnown) ? stage : undefined;
}

/** Returns what a key of known words says. */
export function stageOfKey(words: readonly string[]): OperationStage | undefined {
  const isSaid = words.every(isKnown) && !hasAny(words, negations);
  const stage = isSaid ? worstOf(words) : undefined;
  // `networking` and `logging` say what an object is about.
  return stage === "running" && !hasAny(words, running) && !words.includes("progress") ? undefined : stage;
}

function isEnded(stage: OperationStage): boolean {
  return stage === "ended" || stage === "succeeded";
}

function isWhole(words: readonly string[]): boolean {
  return worstOf(words) !== undefined && words.every(isKnown);
}

function isKnown(word: string): boolean {
  return fillers.has(word) || phraseWords.has(word) || worstOf([word]) !== undefined;
}

const phraseWords: ReadonlySet<string> = new Set(["timed", "time", "out", "of", "memory", "progress"]);

function worstOf(words: readonly string[]): OperationStage | undefined {
  const text = words.join(" ");
  if (hasAny(words, timedOut) || /\btimed? out\b/.test(text)) return "timed out";
  if (hasAny(words, failed) || /\bout of memory\b/.test(text)) return "failed";
  if (hasAny(words, cancelled)) return "cancelled";
  if (words.some((word) => running.has(word) || /^\w{3,}ing$/.test(word)) || /\bin progress\b/.test(text))
    return hasAny(words, queued) ? "queued" : "running";
  if (hasAny(words, queued)) return "queued";
  if (hasAny(words, stopped)) return "stopped";
  if (hasAny(words, succeeded)) return "succeeded";
  if (hasAny(words, stored)) return "stored";
  return hasAny(words, ended) ? "ended" : undefined;
}

/** Returns the number in `Exited (1) 3 seconds ago`, or `exit code 1`. */
export function exitCodeIn(status: string): number | undefined {
  const [, digits] =
    /\b(?:exit(?:ed)?|code)(?: with)?(?: exit)?(?: (?:code|status))?[\s:=(]+(-?\d{1,9})\b/i.exec(status) ??
    [];
  return digits === undefined ? undefined : Number(digits);
}

/** True for words with which a service says that it has answered, and nothing about the operation in the answer. */
export function isOnlyAnswered(status: string): boolean {
  return hasOnly(wordsOf(status), answered);
}

export function isEnd(stage: OperationStage | undefined): boolean {
  return stage !== undefined && stage !== "queued" && stage !== "running";
}

/** Returns the protocol's word for a status, or the service's own if its meaning is not known. */
export function usualStatus(status: string): string {
  const stage = stageOf(status);
  const word = wordsOf(status).join("_").toUpperCase();
  const active = activeStatuses.find((one) => one === word);
  if (active !== undefined) return active;
  return stage === undefined ? status : usual[stage];
}

const usual: Readonly<Record<OperationStage, string>> = {
  queued: "PENDING",
  running: "EXECUTING",
  ended: "SUCCESS",
  stored: "SUCCESS",
  succeeded: "SUCCESS",
  failed: "FAILED",
  "timed out": "FAILED",
  stopped: "CANCELLED",
  cancelled: "CANCELLED",
};
