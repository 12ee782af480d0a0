import { BoughError, messageOf } from "../../errors.ts";

/** What `bough doctor` found out about one thing. */
export interface Finding {
  check: string;
  /** `warning`: it is not as it should be, but nothing that was asked for needs it. */
  status: "ok" | "warning" | "failed";
  detail: string;
  fix?: string;
}

/** An error in the words that a user would see, with its hint as the fix. */
export function failureOf(check: string, error: unknown, status: Finding["status"] = "failed"): Finding {
  const hint = error instanceof BoughError ? error.hint : undefined;
  return { check, status, detail: messageOf(error), ...(hint === undefined ? {} : { fix: hint }) };
}
