import type { BuildEvent } from "../builder/events.ts";
import { type Clock, steadyTime } from "../clock.ts";
import { truncateToWidth } from "./fit.ts";
import { formatDuration } from "./quantity.ts";
import { stepCounter } from "./step-row.ts";

/** The events that announce work which takes a while. Other log lines are about finished work. */
const beginnings = new Set<BuildEvent["type"]>(["spawned", "resumed", "importing", "downloading"]);

/** The length to which an instruction is cut: a long one was shown in whole when its command began. */
const maxTitleColumns = 60;

/** Reports the end of steps whose start was logged. */
interface StepEnds {
  /** Returns `[3/9] done in 4.3 s: RUN make` at the end of such a step, and `failed after` for one that fails. */
  note(event: BuildEvent): string | undefined;
}

export function createStepEnds(clock: Pick<Clock, "now" | "steady">): StepEnds {
  /** The counter of each running step, its start time, and whether its start was logged. */
  const steps = new Map<number, { counter: string; start: number; hasBegun: boolean }>();
  return {
    note(event) {
      if (event.step === undefined) return undefined;
      if (event.type === "step")
        steps.set(event.step, { counter: stepCounter(event), start: steadyTime(clock), hasBegun: false });
      const step = steps.get(event.step);
      if (step === undefined) return undefined;
      if (beginnings.has(event.type)) step.hasBegun = true;
      if (!step.hasBegun) return undefined;
      const line = (how: string, seconds: number, title: string) =>
        `${step.counter} ${how} ${formatDuration(seconds)}: ${truncateToWidth(title, maxTitleColumns)}`;
      if (event.type === "step-end") return line("done in", event.record.seconds, event.record.instruction);
      if (event.type !== "step-failed" || event.abandoned === true) return undefined;
      return line("failed after", (steadyTime(clock) - step.start) / 1000, event.title);
    },
  };
}
