/** Results of trials. Apart from the trial itself, which loads all that runs a command. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireOwnFile } from "../../../own-path.ts";
import type { Layout } from "../../layout.ts";
import type { TrialResult } from "./trial.ts";

interface Remembered {
  key: string;
  at: number;
  result: TrialResult;
}

/** Milliseconds. A crun that has failed is tried again after a day: something else may have been the cause. */
const maxAgeOfFailure = 24 * 60 * 60 * 1000;

/** Returns the result of the last trial; `undefined` if it no longer applies. */
export function recallTrial(
  layout: Pick<Layout, "runtimeTrial">,
  key: string,
  now: number,
): TrialResult | undefined {
  const remembered = read(layout.runtimeTrial);
  if (remembered?.key !== key) return undefined;
  const hasAged = "problem" in remembered.result && Math.abs(now - remembered.at) > maxAgeOfFailure;
  return hasAged ? undefined : remembered.result;
}

export function rememberTrial(layout: Layout, key: string, result: TrialResult, now: number): void {
  const draft = join(layout.scratch, crypto.randomUUID());
  const remembered: Remembered = { key, at: now, result };
  try {
    writeFileSync(draft, JSON.stringify(remembered), { mode: 0o600 });
    renameSync(draft, layout.runtimeTrial);
  } catch {
    // The disk is full, for example. The next engine tries again.
  }
}

function read(path: string): Remembered | undefined {
  requireOwnFile(path);
  try {
    const { key, at, result } = JSON.parse(readFileSync(path, "utf8")) as Partial<Remembered>;
    if (typeof key !== "string" || typeof at !== "number" || !isResult(result)) return undefined;
    return { key, at, result };
  } catch {
    return undefined;
  }
}

function isResult(value: unknown): value is TrialResult {
  if (typeof value !== "object" || value === null) return false;
  const { filter, problem } = value as { filter?: unknown; problem?: unknown };
  return typeof filter === "string" || typeof problem === "string";
}
