import { helperEnvironment } from "../../engine/system/programs.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { runHelper } from "../../programs/helper.ts";
import type { Runtime } from "../process/runtime.ts";

/** The result of one check of `bough doctor`. */
export interface CheckResult {
  check: string;
  /** `warning`: a problem that does not keep bough from working as it is configured. */
  status: "ok" | "warning" | "failed";
  detail: string;
  fix?: string;
}

/** Returns the result of a check that has failed with an error, whose hint becomes the fix. */
export function failedCheck(
  check: string,
  error: unknown,
  status: CheckResult["status"] = "failed",
): CheckResult {
  const hint = error instanceof BoughError ? error.hint : undefined;
  return { check, status, detail: messageOf(error), ...(hint === undefined ? {} : { fix: String(hint) }) };
}

/** Runs a trial. Returns the error if it fails. */
export async function attempt<Result>(
  { signal }: Runtime,
  trial: () => Promise<Result>,
): Promise<Result | BoughError> {
  try {
    return await trial();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BoughError) return error;
    throw error;
  }
}

/** The maximum duration of a trial. Normally each takes some milliseconds. */
export const maxTrialSeconds = 10;

/** Returns a program's name with its version, such as `runc 1.1.5`. */
export async function programVersion(
  name: string,
  path: string,
  { environment, clock, signal }: Runtime,
): Promise<string> {
  const options = { environment: helperEnvironment(environment), clock, signal, seconds: maxTrialSeconds };
  const { stdout } = await runHelper([path, "--version"], options);
  return [name, ...(/\d+\.\d[\w.+~-]*/.exec(stdout) ?? [])].join(" ");
}
