import type { BuildEvent } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { StepPlace } from "../builder/step-place.ts";

/** `[3/9]`; `[build 3/9]` where other steps are at work, too. */
export function stepCounter({ stage, step }: StepPlace, steps: number, isAlone: boolean): string {
  const name = isAlone || !stage?.name ? "" : `${stage.name} `;
  return `[${name}${step}/${steps}]`;
}

/** Tells steps apart that are at work at once. */
export interface StepLabels {
  note(event: BuildEvent): void;
  /** `[build 3/9] `; empty for a step that is alone. */
  labelOf(place: StepPlace): string;
}

export function createStepLabels(): StepLabels {
  const running = new Set<number>();
  let steps = 0;
  return {
    note(event) {
      if (event.type === "forgotten-layer") running.clear();
      if (event.type === "step-end") running.delete(event.step);
      if (event.type !== "step") return;
      running.add(event.step);
      steps = event.steps;
    },
    labelOf: (place) => (running.size <= 1 ? "" : `${stepCounter(place, steps, false)} `),
  };
}

/**
 * Steps of the Dockerfile, as `[n/m]` counts them: what the last instructions have left to do has a record of its own under
 * the number of the last one.
 */
export function countSteps(records: readonly StepRecord[]): number {
  return new Set(records.map(({ step }) => step)).size;
}
