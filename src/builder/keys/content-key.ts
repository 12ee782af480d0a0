import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { formatPlatform } from "../../image/platform.ts";
import { createPace } from "../../pace.ts";
import { sha256Of } from "../../sha256.ts";
import { overrideStages } from "../graph/build-graph.ts";
import { linkStages } from "../graph/linked-stages.ts";
import { interpretFrom, interpretInStage, startGlobals } from "../interpreter/interpret.ts";
import { declareGlobals } from "../interpreter/settings.ts";
import { withLocation } from "../location.ts";
import { targetStageName } from "../state/platform.ts";
import type { StageState } from "../state/state.ts";
import { stepsOf } from "../step-place.ts";
import { resultConfiguration, withLabels } from "../steps/configure-stage.ts";
import { canonicalJson } from "./canonical-json.ts";
import { createKeyBackend } from "./key-backend.ts";
import type { KeyJob } from "./key-job.ts";

/** A target whose content key is known. What starts from it, or copies from it, gets a key from its state. */
export interface TargetKey {
  /** SHA-256, in hex. */
  key: string;
  stage: StageState;
  /** Hashes of the layers that steps make, by the step's number: equal hashes mean equal layers, also in other targets. */
  layers: ReadonlyMap<number, string>;
  /** The number of steps. */
  steps: number;
}

/** The version of the hashed format. A change of meaning increments it, so that no image is taken for another. */
const keyVersion = 1;

/**
 * Finds the content key of a target: a hash of everything that goes into its image. A chain hash covers the same for a layer, but
 * identifies images by one machine's names; a content key identifies each base by its content, so it is equal on all machines. Nothing
 * is built, and no layer of a base is fetched: a RUN counts by its inputs.
 */
export async function findContentKey(given: KeyJob): Promise<TargetKey> {
  const dockerfile = overrideStages(given.asked.dockerfile, given.asked.contexts);
  const job: KeyJob = { ...given, asked: { ...given.asked, dockerfile } };
  const { asked, platforms } = job;
  const { dialect } = asked;
  const layers = new Map<number, string>();
  const stage = await findStage(dockerfile, job, layers);
  const named = withLabels(stage, dialect.keepsConfiguration ? asked.labels : new Map());
  const content = [
    keyVersion,
    // Both dialects may make different copies of the same files.
    dialect.name,
    formatPlatform(platforms.target),
    named.layer.hash,
    resultConfiguration(named, asked),
    named.author ?? null,
  ];
  const { length: steps } = dockerfile.instructions;
  return { key: sha256Of(canonicalJson(content)), stage: named, layers, steps };
}

/** Interprets the stages that the target needs, in the order of the Dockerfile. Returns the target's final state. */
async function findStage(
  dockerfile: Dockerfile,
  job: KeyJob,
  layers: Map<number, string>,
): Promise<StageState> {
  const { asked, platforms, signal } = job;
  const { buildArgs } = asked;
  const { escape } = dockerfile;
  let globals = startGlobals({ platforms, stage: targetStageName(dockerfile, asked.target) }, buildArgs);
  for (const instruction of dockerfile.globals)
    globals = await withLocation(asked, instruction, async () =>
      declareGlobals(instruction, globals, { buildArgs, escape }),
    );
  const links = linkStages(dockerfile, globals, asked);
  const ends = new Map<number, StageState>();
  const stageOf = (index: number | undefined) => (index === undefined ? undefined : ends.get(index));
  const backend = createKeyBackend(job, {
    baseOf: (from) => stageOf(links.sourcesOf(from)[0]),
    sourceOf: (instruction) => stageOf(links.sourcesOf(instruction)[0]),
    mountedStage: (run, from) => stageOf(links.mountedStage(run, from)),
    triggersOf: links.triggersOf,
    linkTrigger: links.linkTrigger,
  });
  const pace = createPace(signal);
  const numbers = new Map(stepsOf(dockerfile).map(({ instruction, step }) => [instruction, step]));
  const needed = new Set(links.needed);
  for (const { index, from, instructions } of dockerfile.stages.filter((each) => needed.has(each.index))) {
    let state = await withLocation(asked, from, () => interpretFrom(from, globals, backend));
    for (const instruction of instructions) {
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const before = state;
      state = await withLocation(asked, instruction, () =>
        interpretInStage(instruction, before, globals, backend),
      );
      if (state.layer !== before.layer) layers.set(numbers.get(instruction) ?? 0, state.layer.hash);
    }
    ends.set(index, state);
  }
  const end = ends.get(links.target);
  if (end === undefined) throw new Error("the target is among the stages that it needs");
  return end;
}
