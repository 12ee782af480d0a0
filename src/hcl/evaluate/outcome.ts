import { HclError, HclLimitError } from "../hcl-error.ts";
import type { Value } from "../values/value.ts";

/** What an expression came to, where its error may not matter: `false && x` is false whatever `x` is. */
export type Outcome = { value: Value } | { error: HclError };

export function outcomeOf(evaluate: () => Value): Outcome {
  try {
    return { value: evaluate() };
  } catch (error) {
    if (!(error instanceof HclError) || error instanceof HclLimitError) throw error;
    return { error };
  }
}

export function valueOf(outcome: Outcome): Value {
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}
