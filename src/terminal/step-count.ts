import type { StepRecord } from "../builder/result.ts";

/**
 * Steps of the Dockerfile, as `[n/m]` counts them: what the last instructions have left to do has a record of its own, on
 * the line of the last one.
 */
export function countSteps(records: readonly StepRecord[]): number {
  return new Set(records.map(({ line }) => line)).size;
}
