import type { StepSpan } from "./spans.ts";

/** A step that waited for another's slot begins within this time after its end. */
const handoverMilliseconds = 20;

/**
 * Returns the steps that determine the build's duration, in order. Each waited for the end of the one before, because it needs
 * its result or its slot (`--jobs`). Making any other step faster does not shorten the build.
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

/** Returns the step that ended last. */
export function lastOf(steps: readonly StepSpan[]): StepSpan | undefined {
  return steps.reduce<StepSpan | undefined>(
    (last, step) => (last === undefined || step.end >= last.end ? step : last),
    undefined,
  );
}
