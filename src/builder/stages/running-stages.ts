import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import { once } from "../../once.ts";
import type { Dialect } from "../dialect.ts";
import type { RunningBuild, StageResults } from "../job.ts";
import { titleOf } from "../location.ts";
import type { StepRecord } from "../result.ts";
import type { BuildPlatforms } from "../state/platform.ts";
import type { Arguments } from "../state/scope.ts";
import { type PlacedInstruction, stepsOf } from "../step-place.ts";
import { layerMakers } from "../steps/step.ts";
import type { StagePrefetch } from "./source-prefetch.ts";

/** The state that the stages of a running build share. */
export interface RunningStages {
  running: RunningBuild;
  platforms: BuildPlatforms | undefined;
  globals: Arguments;
  steps: readonly PlacedInstruction[];
  /** The steps of one stage. */
  stepsOf(index: number): readonly PlacedInstruction[];
  ordinals: Ordinals;
  /** Indexes of the stages of `--no-cache-filter`. */
  uncached: ReadonlySet<number>;
  records: StepRecord[];
  results: StageResults;
  /** Resolves when the stages that the instruction uses have ended. */
  waitFor(instruction: Instruction): Promise<unknown>;
  /** The indexes of the stages that the instruction uses. */
  needsOf(instruction: Instruction): readonly number[];
  takeSlot(): Promise<() => void>;
  prefetchOf(index: number): StagePrefetch;
  /** Returns true if several stages run in this build. */
  areMany(): boolean;
}

/** Numbers that identify a Dockerfile's layer-making steps from one build to the next. */
interface Ordinals {
  /** The number of the first layer that the step makes: the count of layer-making instructions before it, in all stages. */
  ofStep(step: PlacedInstruction): number;
  /** The number of the layer that takes the files still staged at a stage's end. */
  ofCommit(stage: number): number;
  /** The number of the first layer of a copy of the context, which no instruction makes. */
  ofContext: number;
  /** The index of the stage that a number belongs to; `undefined` if the Dockerfile has no such step. */
  stageOf(ordinal: number): number | undefined;
  /** Returns the titles of all instructions that make a layer. */
  titles(): readonly string[];
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
    titles: once(() => makers.map(titleOf)),
    ofStep: ({ instruction, stage }) =>
      byInstruction.get(instruction) ?? -maxTriggers * ((stage?.index ?? 0) + 1),
    // Commits come after all instructions, the last stage's first.
    ofCommit: (stage) => makers.length + length - 1 - stage,
    ofContext: makers.length + length,
    stageOf(ordinal) {
      const maker = makers[ordinal];
      if (maker !== undefined) return stages.get(maker);
      if (ordinal >= 0) return inStages(makers.length + length - 1 - ordinal);
      return inStages(Math.ceil(-ordinal / maxTriggers) - 1);
    },
  };
}
