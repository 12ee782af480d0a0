import { HclError, HclLimitError } from "../hcl-error.ts";
import type { HclValue } from "../values/value.ts";

/** The value or the error of an expression whose error may be ignored: `false && x` is false even if `x` fails. */
export type EvalOutcome = { value: HclValue } | { error: HclError };

export function outcomeOf(evaluate: () => HclValue): EvalOutcome {
  try {
    return { value: evaluate() };
  } catch (error) {
    if (!(error instanceof HclError) || error instanceof HclLimitError) throw error;
    return { error };
  }
}

export function valueOf(outcome: EvalOutcome): HclValue {
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}
