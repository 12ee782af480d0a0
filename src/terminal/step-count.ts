import type { BuildEvent, StepInStage } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { StageLabel, StepPlace } from "../builder/step-place.ts";

/** A step of so many; `inStage` where it is shown by its stage. */
type CountedStep = StepPlace & { steps: number; inStage?: StepInStage | undefined };

/** `[3/9]`; where it is shown by its stage, `[build 2/5]` or `[stage-1 2/5]`: Docker's. */
export function stepCounter({ stage, step, steps, inStage }: CountedStep): string {
  if (stage === null || inStage === undefined) return `[${step}/${steps}]`;
  return `[${stageName(stage)} ${inStage.step}/${inStage.steps}]`;
}

/** `build`, or `stage-1` of one without a name: Docker's. */
export function stageName({ index, name }: StageLabel): string {
  return name ?? `stage-${index}`;
}

/** Tells steps apart that are at work at once. */
interface StepLabels {
  note(event: BuildEvent): void;
  /** `[build 2/5] ` for all lines of a step that is shown by its stage; empty for others, and for what is not a step's. */
  labelOf(place: { step?: number | undefined }): string;
  /** Steps at work. */
  readonly running: number;
}

export function createStepLabels(): StepLabels {
  const running = new Set<number>();
  /** Labels by step. */
  const labels = new Map<number, string>();
  return {
    note(event) {
      if (event.type === "forgotten-layer") running.clear();
      if (event.type === "step-end" || event.type === "step-failed") running.delete(event.step);
      if (event.type !== "step") return;
      running.add(event.step);
      if (event.inStage !== undefined) labels.set(event.step, `${stepCounter(event)} `);
    },
    labelOf: ({ step }) => (step === undefined ? undefined : labels.get(step)) ?? "",
    get running() {
      return running.size;
    },
  };
}

/**
 * Steps of the Dockerfile, as `[n/m]` counts them: what the last instructions have left to do has a record of its own under
 * the number of the last one.
 */
export function countSteps(records: readonly StepRecord[]): number {
  return new Set(records.map(({ step }) => step)).size;
}
