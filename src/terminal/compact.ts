import type { BuildEvent } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { LogLine } from "./build-log.ts";
import { truncateToWidth } from "./fit.ts";
import type { LiveStep } from "./live-state.ts";
import { formatDuration } from "./quantity.ts";
import { stepCounter } from "./step-count.ts";

/** Instructions that take time: of the others nobody wants to hear. */
const working = /^(FROM|RUN|COPY|ADD)\b/i;

/** Returns whether a line of the log is told in the compact view, where a step that is over has one line of its own. */
export function isToldInCompact(event: BuildEvent, { level, isAlways }: LogLine): boolean {
  return (
    level === "warn" || level === "error" || isAlways === true || ["tagged", "finished"].includes(event.type)
  );
}

/** `[2/5] RUN make all  12.3 s`, at most `columns` wide; `undefined` for a step that has done nothing. */
export function renderFinishedStep(
  step: LiveStep,
  { instruction, cached, seconds }: StepRecord,
  columns: number,
): string | undefined {
  if (!working.test(instruction)) return undefined;
  const counter = stepCounter(step);
  const end = cached === true ? "cached" : formatDuration(seconds);
  const room = columns - counter.length - end.length - 3;
  return `${counter} ${truncateToWidth(instruction, Math.max(8, room))}  ${end}`;
}
