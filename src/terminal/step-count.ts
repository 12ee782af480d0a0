import type { BuildEvent, StepInStage } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { StageLabel, StepPlace } from "../builder/step-place.ts";

/** A step and the number of all steps; `inStage` if its stage is shown. */
type CountedStep = StepPlace & { steps: number; inStage?: StepInStage | undefined };

/** Returns `[3/9]`, or with its stage, as Docker does, `[build 2/5]` or `[stage-1 2/5]`. */
export function stepCounter({ stage, step, steps, inStage }: CountedStep): string {
  if (stage === null || inStage === undefined) return `[${step}/${steps}]`;
  return `[${stageName(stage)} ${inStage.step}/${inStage.steps}]`;
}

/** Returns a stage's name, or `stage-1` if it has none, as Docker does. */
export function stageName({ index, name }: StageLabel): string {
  return name ?? `stage-${index}`;
}

/** Labels for the lines of steps that run at the same time. */
interface StepLabels {
  note(event: BuildEvent): void;
  /** Returns `[build 2/5] ` for a step that is shown with its stage, otherwise an empty text. */
  labelOf(place: { step?: number | undefined }): string;
  /** The number of running steps. */
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
 * Counts steps of the Dockerfile, as `[n/m]` does. Work that remains after a stage's last instruction has its own record with
 * that instruction's number.
 */
export function countSteps(records: readonly StepRecord[]): number {
  return new Set(records.map(({ step }) => step)).size;
}
