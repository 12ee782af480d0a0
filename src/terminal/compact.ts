import type { BuildEvent } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { LogLine } from "./build-log.ts";
import { truncateToWidth } from "./fit.ts";
import type { LiveStep } from "./live-state.ts";
import { formatDuration } from "./quantity.ts";
import { stepCounter } from "./step-count.ts";

/** Instructions that take time; the others are not shown. */
const working = /^(FROM|RUN|COPY|ADD)\b/i;

/** True if a log line is shown in the compact view, which has one line for each finished step. */
export function isShownInCompact(event: BuildEvent, { level, isAlways }: LogLine): boolean {
  return (
    level === "warn" || level === "error" || isAlways === true || ["tagged", "finished"].includes(event.type)
  );
}

/** Renders `[2/5] RUN make all  12.3 s`, at most `columns` wide; `undefined` for an instruction that takes no time. */
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
