import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import type { Dialect } from "../dialect.ts";
import { type Step, stepsOf } from "../step-place.ts";
import { layerMakers } from "../steps/layer-makers.ts";

/** Numbers that identify a Dockerfile's layer-making steps from one build to the next. */
export interface Ordinals {
  /** The number of the first layer that the step makes: the count of layer-making instructions before it, in all stages. */
  ofStep(step: Step): number;
  /** The number of the layer that takes the files still staged at a stage's end. */
  ofCommit(stage: number): number;
  /** The index of the stage that a number belongs to; `undefined` if the Dockerfile has no such step. */
  stageOf(ordinal: number): number | undefined;
}

/** The maximum number of triggers of an image. Their ordinals are negative, below those of all instructions. */
const maxTriggers = 10_000;

export function ordinalsOf(dockerfile: Dockerfile, dialect: Dialect): Ordinals {
  const { length } = dockerfile.stages;
  const makers = layerMakers(dockerfile, dialect);
  const byInstruction = new Map<Instruction, number>(
    makers.map((instruction, ordinal) => [instruction, ordinal]),
  );
  const stages = new Map(stepsOf(dockerfile).map(({ instruction, stage }) => [instruction, stage?.index]));
  const inStages = (index: number) => (index >= 0 && index < length ? index : undefined);
  return {
    ofStep: ({ instruction, stage }) =>
      byInstruction.get(instruction) ?? -maxTriggers * ((stage?.index ?? 0) + 1),
    // Commits come after all instructions, the last stage's first.
    ofCommit: (stage) => makers.length + length - 1 - stage,
    stageOf(ordinal) {
      const maker = makers[ordinal];
      if (maker !== undefined) return stages.get(maker);
      if (ordinal >= 0) return inStages(makers.length + length - 1 - ordinal);
      return inStages(Math.ceil(-ordinal / maxTriggers) - 1);
    },
  };
}
