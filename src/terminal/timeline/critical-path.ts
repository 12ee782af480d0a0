import type { StepSpan } from "./spans.ts";

/** A step that waited for another's place begins within this time of its end. */
const handoverMilliseconds = 20;

/**
 * The steps that the build's length is made of, in their order: each began when the one before it had ended, which it needs
 * or which took its place (`--jobs`). To make another step faster ends the build no earlier.
 */
export function findCriticalPath(steps: readonly StepSpan[]): StepSpan[] {
  const path: StepSpan[] = [];
  let next = lastOf(steps);
  while (next !== undefined && !path.includes(next)) {
    path.unshift(next);
    next = blockerOf(next, steps);
  }
  return path;
}

function blockerOf(step: StepSpan, steps: readonly StepSpan[]): StepSpan | undefined {
  const before = steps.filter((other) => other !== step && other.end <= step.start);
  const needed = lastOf(
    before.filter(
      ({ stage }) => stage?.index === step.stage?.index || step.needs.includes(stage?.index ?? -1),
    ),
  );
  const last = lastOf(before);
  if (needed === undefined || last === undefined) return last;
  const hasWaited = step.start - needed.end > handoverMilliseconds;
  return hasWaited && step.start - last.end <= handoverMilliseconds ? last : needed;
}

function lastOf(steps: readonly StepSpan[]): StepSpan | undefined {
  return steps.reduce<StepSpan | undefined>(
    (last, step) => (last === undefined || step.end >= last.end ? step : last),
    undefined,
  );
}
