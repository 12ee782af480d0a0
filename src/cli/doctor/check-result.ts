import { BoughError, messageOf } from "../../errors.ts";

/** The result of one check of `bough doctor`. */
export interface CheckResult {
  check: string;
  /** `warning`: a problem that does not keep bough from working as it is configured. */
  status: "ok" | "warning" | "failed";
  detail: string;
  fix?: string;
}

/** Returns the result of a check that met an error: its message as the detail, its hint as the fix. */
export function failedCheck(
  check: string,
  error: unknown,
  status: CheckResult["status"] = "failed",
): CheckResult {
  const hint = error instanceof BoughError ? error.hint : undefined;
  return { check, status, detail: messageOf(error), ...(hint === undefined ? {} : { fix: hint }) };
}
