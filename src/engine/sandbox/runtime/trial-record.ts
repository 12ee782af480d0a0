/** Recorded results of trials. The trial itself is a module of its own, since it loads everything that runs a command. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireOwnFile } from "../../../own-path.ts";
import type { Layout } from "../../layout.ts";
import type { TrialResult } from "./trial.ts";

interface TrialRecord {
  key: string;
  at: number;
  result: TrialResult;
}

/** A crun that has failed is tried again after a day, since something else may have been the cause. */
const maxFailureAgeMilliseconds = 24 * 60 * 60 * 1000;

/** Returns the result of the last trial; `undefined` if it no longer applies. */
export function readTrial(
  layout: Pick<Layout, "runtimeTrial">,
  key: string,
  now: number,
): TrialResult | undefined {
  const record = read(layout.runtimeTrial);
  if (record?.key !== key) return undefined;
  const isOutdated = "problem" in record.result && Math.abs(now - record.at) > maxFailureAgeMilliseconds;
  return isOutdated ? undefined : record.result;
}

export function recordTrial(layout: Layout, key: string, result: TrialResult, now: number): void {
  const draft = join(layout.scratch, crypto.randomUUID());
  const record: TrialRecord = { key, at: now, result };
  try {
    writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
    renameSync(draft, layout.runtimeTrial);
  } catch {
    // The disk is full, for example. The next engine tries again.
  }
}

function read(path: string): TrialRecord | undefined {
  requireOwnFile(path);
  try {
    const { key, at, result } = JSON.parse(readFileSync(path, "utf8")) as Partial<TrialRecord>;
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
