import type { BuildEvent } from "../builder/events.ts";
import { truncateToWidth } from "./fit.ts";
import { formatDuration } from "./quantity.ts";
import { stepCounter } from "./step-row.ts";

/** What announces work that takes a while; other lines of the log are about what is done. */
const beginnings: ReadonlySet<BuildEvent["type"]> = new Set([
  ...(["spawned", "resumed", "importing", "downloading"] as const),
]);

/** A long instruction was shown in whole when its command began. */
const maxTitleColumns = 60;

/** Tells the end of steps whose begin was logged. */
export interface StepEnds {
  /** Returns `[3/9] done in 4.3 s: RUN make` at the end of such a step. */
  note(event: BuildEvent): string | undefined;
}

export function createStepEnds(): StepEnds {
  /** The counter of each running step, and whether its begin was logged. */
  const steps = new Map<number, { counter: string; hasBegun: boolean }>();
  return {
    note(event) {
      if (event.step === undefined) return undefined;
      if (event.type === "step") steps.set(event.step, { counter: stepCounter(event), hasBegun: false });
      const step = steps.get(event.step);
      if (step === undefined) return undefined;
      if (beginnings.has(event.type)) step.hasBegun = true;
      if (event.type !== "step-end" || !step.hasBegun) return undefined;
      const { seconds, instruction } = event.record;
      const title = truncateToWidth(instruction, maxTitleColumns);
      return `${step.counter} done in ${formatDuration(seconds)}: ${title}`;
    },
  };
}
