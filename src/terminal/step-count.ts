import type { BuildEvent, StepInStage } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { StageLabel, StepPlace } from "../builder/step-place.ts";

/** `[3/9]`; `[build 3/9]` where other steps are at work, too. */
export function stepCounter({ stage, step }: StepPlace, steps: number, isAlone: boolean): string {
  const name = isAlone || !stage?.name ? "" : `${stage.name} `;
  return `[${name}${step}/${steps}]`;
}

/** `[build 2/5]`, `[stage-1 2/5]`: Docker's, the second of five in that stage. */
export function stageCounter(stage: StageLabel, { step, steps }: StepInStage): string {
  return `[${stageName(stage)} ${step}/${steps}]`;
}

/** `build`, or `stage-1` of one without a name: Docker's. */
export function stageName({ index, name }: StageLabel): string {
  return name ?? `stage-${index}`;
}

/** Tells steps apart that are at work at once. */
interface StepLabels {
  note(event: BuildEvent): void;
  /** `[build 3/9] `; empty for a step that is alone and not shown by its stage. */
  labelOf(place: StepPlace): string;
  /** `[build 2/5] ` for all lines of a step that is shown by its stage; empty for others, and for what is no step's. */
  stageLabelOf(place: { step?: number | undefined }): string;
  /** Steps at work. */
  readonly running: number;
}

export function createStepLabels(): StepLabels {
  const running = new Set<number>();
  /** Labels by step. */
  const stageLabels = new Map<number, string>();
  let steps = 0;
  const stageLabelOf: StepLabels["stageLabelOf"] = ({ step }) =>
    (step === undefined ? undefined : stageLabels.get(step)) ?? "";
  return {
    note(event) {
      if (event.type === "forgotten-layer") running.clear();
      if (event.type === "step-end" || event.type === "step-failed") running.delete(event.step);
      if (event.type !== "step") return;
      const { stage, step, inStage } = event;
      running.add(step);
      steps = event.steps;
      if (stage !== null && inStage !== undefined) stageLabels.set(step, `${stageCounter(stage, inStage)} `);
    },
    labelOf: (place) =>
      stageLabelOf(place) || (running.size <= 1 ? "" : `${stepCounter(place, steps, false)} `),
    stageLabelOf,
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
