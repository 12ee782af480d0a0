/**
 * The evidence in a response about an operation. The operation has ended only if a value says so and none says that it is running; it
 * has succeeded only if no value contradicts that.
 */
import { asRecord } from "../../http/json.ts";
import { type ExitCodes, exitCodesIn } from "./exit-codes.ts";
import {
  isEndOf,
  isErrorKey,
  isNothing,
  isOfOperation,
  isStatus,
  isUnknownConclusion,
  lacksEnd,
  type OperationStatement,
  reportsSuccess,
  statementIn,
} from "./statements.ts";
import { stageOf } from "./status.ts";
import { envelopes, messages, operationNouns, pasts, requests, statusKeys } from "./vocabulary.ts";
import { type Leaf, leavesOf } from "./walk.ts";
import { hasAny, wordsOf } from "./words.ts";

export interface Evidence {
  /** The statement that it is running or queued: a status, `done: false`. */
  goesOn: OperationStatement | undefined;
  /** True if a value indicates, less clearly, that there is no end yet, such as an empty time of the end. */
  lacksEnd: boolean;
  /** The statement that it has ended. */
  end: OperationStatement | undefined;
  /** True if the only statements of an end are words that may just mean that the service has responded. */
  isWeak: boolean;
  /** The statement that it is not running. */
  idle: OperationStatement | undefined;
  /** The statement that it has succeeded. */
  success: OperationStatement | undefined;
  /** The strongest statement against a success. */
  against: OperationStatement | undefined;
  /** A conclusion in an unknown word. */
  unknownConclusion: Leaf | undefined;
  exit: ExitCodes;
  /** The status as it is written; `undefined` if there is none. */
  status: string | undefined;
  /** The service's error message. */
  error: string | undefined;
  /** A message that is the reason of a failure, if the operation has failed. */
  reason: string | undefined;
}

export function evidenceIn(body: unknown): Evidence {
  const all = leavesOf(typeof body === "string" ? { status: body } : body).filter(isOfOperation);
  const present = all.filter(({ isPast }) => !isPast);
  const isWrapped = present.some(isWrapper);
  const said = present.flatMap((leaf) => statementIn(leaf, isWrapped) ?? []);
  const ends = said.filter(isEndOf);
  const lacks = present.some(lacksEnd);
  const strong = ends.find(({ isWeak, isDoubtful }) => !isWeak && !(isDoubtful && lacks));
  const end = strong ?? ends[0];
  return {
    goesOn: said.find((one) => one.stage === "running") ?? said.find((one) => one.stage === "queued"),
    lacksEnd: lacks,
    end,
    isWeak: strong === undefined,
    idle: said.find(({ stage }) => stage === "idle"),
    success: end && ends.find((one) => reportsSuccess(one, end)),
    against: against.flatMap((stage) => ends.find((one) => one.stage === stage) ?? [])[0],
    unknownConclusion: present.find(isUnknownConclusion),
    exit: exitCodesIn(all),
    status: present
      .filter(isStatus)
      .map(textOf)
      .find((text) => text !== undefined),
    error: firstText(present, ({ key, around }) => isErrorKey(key) || isErrorKey(around.at(-1) ?? [])),
    reason: firstText(present, ({ key, depth }) => hasAny(key, messages) && depth <= 2),
  };
}

/** Returns the status of a record itself, as it is written. */
export function statusOf(record: unknown): string | undefined {
  return leavesOf(record)
    .filter((leaf) => isStatus(leaf) && (leaf.depth === 0 || hasAny(leaf.around[0] ?? [], statusKeys)))
    .map(textOf)
    .find((text) => text !== undefined);
}

/** An object in which a service puts its answer, or what was started. */
function isWrapper({ key, depth, value }: Leaf): boolean {
  return (
    depth === 0 && asRecord(value) !== undefined && (hasAny(key, envelopes) || hasAny(key, operationNouns))
  );
}

const against = ["timed out", "failed", "cancelled"] as const;

function textOf({ value }: Leaf): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

const maxErrorCharacters = 64 * 1024;

function firstText(leaves: readonly Leaf[], isWanted: (leaf: Leaf) => boolean): string | undefined {
  for (const leaf of leaves) {
    const text = isWanted(leaf) ? textOf(leaf) : undefined;
    if (text !== undefined && !isNothing(text) && stageOf(text) !== "succeeded")
      return text.slice(0, maxErrorCharacters);
  }
  return undefined;
}

const maxShownCharacters = 500;
const maxShownText = 100;

/** Returns an answer in one line for a message, without what was asked for. */
export function shownResponse(body: unknown): string {
  const text = JSON.stringify(body, (name, value: unknown) => {
    const words = wordsOf(name);
    if (name !== "" && (hasAny(words, requests) || hasAny(words, pasts))) return undefined;
    return typeof value === "string" && value.length > maxShownText
      ? `${value.slice(0, maxShownText)}...`
      : value;
  });
  return text === undefined
    ? "nothing"
    : text.length > maxShownCharacters
      ? `${text.slice(0, maxShownCharacters)}...`
      : text;
}
