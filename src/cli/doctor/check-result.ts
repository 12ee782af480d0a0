import { BoughError, messageOf } from "../../errors.ts";

/** What `bough doctor` found out about one thing. */
export interface CheckResult {
  check: string;
  /** `warning`: it is not as it should be, but nothing that was asked for needs it. */
  status: "ok" | "warning" | "failed";
  detail: string;
  fix?: string;
}

/** An error in the words that a user would see, with its hint as the fix. */
export function failedCheck(
  check: string,
  error: unknown,
  status: CheckResult["status"] = "failed",
): CheckResult {
  const hint = error instanceof BoughError ? error.hint : undefined;
  return { check, status, detail: messageOf(error), ...(hint === undefined ? {} : { fix: hint }) };
}
