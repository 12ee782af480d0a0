import type { Problem } from "../dockerfile/problems/problem.ts";
import type { WarningRule } from "./rules.ts";

/** A warning or an error of `--check`. */
export interface Finding extends Omit<Problem, "rule" | "range"> {
  rule: string;
  /** The lines of the instruction; `undefined` if the finding is not about the Dockerfile. */
  range: Problem["range"] | undefined;
  /** Advice for the user. */
  hint?: string;
}

/** Returns the line that a finding is shown at, 1-based. */
export function lineOf({ culprit, range }: Finding): number | undefined {
  return culprit?.line ?? range?.start;
}

export function warn(rule: WarningRule, message: string, { range }: { range: Problem["range"] }): Finding {
  return { rule, message, range };
}

/** Returns the message with the advice. */
export function textOf({ message, hint }: Finding): string {
  return hint === undefined ? message : `${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`;
}
