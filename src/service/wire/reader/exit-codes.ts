/** The exit codes in an answer, whatever their keys are, and those of several processes. */
import { constants } from "node:os";
import { asInteger, asNumber } from "../../http/json.ts";
import { exitCodeIn } from "./status.ts";
import {
  codes,
  errors,
  exits,
  fillers,
  operationNouns,
  results,
  signals,
  statusKeys,
  times,
} from "./vocabulary.ts";
import type { Leaf } from "./walk.ts";
import { hasAny, hasOnly } from "./words.ts";

export interface ExitCodes {
  /** The one that counts: of several, one that is not 0. */
  code: number | undefined;
  /** True if an exit code has a key, and no value. */
  isEmpty: boolean;
}

export function exitCodesIn(leaves: readonly Leaf[]): ExitCodes {
  const own = leaves.filter(isExitCode);
  const loose = leaves.filter(isLoose);
  const said = leaves.flatMap(({ key, value }) =>
    hasAny(key, statusKeys) && typeof value === "string" ? (exitCodeIn(value) ?? []) : [],
  );
  const code = chosen([...numbersOf(own), ...said]) ?? chosen(numbersOf(loose));
  const signal = signalIn(leaves);
  return {
    // A service may report the 0 that WEXITSTATUS returns for a killed process.
    code: signal !== undefined && (code ?? 0) === 0 ? 128 + signal : code,
    isEmpty: own.some(({ value, isPast }) => !isPast && (value === null || value === "")),
  };
}

function chosen(numbers: readonly number[]): number | undefined {
  return numbers.find((number) => number > 0) ?? numbers.find((number) => number !== 0) ?? numbers[0];
}

/** An earlier exit code of 0 is none of the end. */
function numbersOf(leaves: readonly Leaf[]): number[] {
  return leaves.flatMap(({ value, isPast }) => {
    const number = asInteger(value) ?? asNumber(value);
    return number === undefined || (isPast && number === 0) ? [] : [number];
  });
}

/** `exit_code`, `returncode`, `rc`, and `code` in an object that is named so. */
function isExitCode({ key, around, named, value }: Leaf): boolean {
  if (typeof value === "object" && value !== null) return false;
  if (hasAny(key, signals) || hasAny(key, times) || hasAny(key, errors)) return false;
  if (hasAny(key, exits)) return hasOnly(key, ownWords);
  if (key.includes("wait")) return hasAny(key, codes);
  const inner = around.at(-1) ?? [];
  const isIn = hasAny(inner, exits) || hasAny(named, exits);
  return hasOnly(key, codes) && (isIn || (inner.includes("process") && hasAny(key, statusKeys)));
}

const ownWords: ReadonlySet<string> = new Set([
  ...exits,
  ...codes,
  ...fillers,
  ...operationNouns,
  "last",
  "number",
]);

/** `code` and `status_code` may also be a status of HTTP, if they stand beside the rest. */
function isLoose({ key, around, value, depth, isPast }: Leaf): boolean {
  const number = asInteger(value);
  if (number === undefined || isPast || number < 0 || number > (depth === 0 ? 199 : 255)) return false;
  if (around.some((words) => hasAny(words, errors)) || !hasOnly(key, looseWords)) return false;
  return key.includes("code") || hasOnly(key, results);
}

const looseWords: ReadonlySet<string> = new Set([...codes, ...results, ...operationNouns, "wait"]);

function signalIn(leaves: readonly Leaf[]): number | undefined {
  for (const { key, value, isPast } of leaves) {
    if (isPast || !hasAny(key, signals) || typeof value === "boolean") continue;
    const number = asInteger(value) ?? numberOfSignal(value);
    if (number !== undefined && number > 0) return number;
  }
  return undefined;
}

function numberOfSignal(value: unknown): number | undefined {
  const name = typeof value === "string" ? value.toUpperCase().replace(/^(SIG)?/, "SIG") : "";
  return Object.entries(constants.signals).find(([one]) => one === name)?.[1];
}
