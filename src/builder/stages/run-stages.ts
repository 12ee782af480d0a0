import type { Instruction } from "../../dockerfile/instruction.ts";
import { buildPlatforms, requireBase, scratch } from "../bases/base.ts";
import { explainDirectoryBase } from "../contexts/named-context.ts";
import { AbandonedError } from "../events.ts";
import { type BuildGraph, reachableFrom, uncachedStages } from "../graph/build-graph.ts";
import { linkStages } from "../graph/linked-stages.ts";
import { startGlobals } from "../interpreter/interpret.ts";
import type { BuildJob, RunningBuild } from "../job.ts";
import { withLocation } from "../location.ts";
import { EvictedImageError } from "../operations/evicted-image.ts";
import type { StepRecord } from "../result.ts";
import { createSmallContents } from "../staging/small-contents.ts";
import { type BuildPlatforms, dependsOnPlatform, targetStageName } from "../state/platform.ts";
import type { StageState } from "../state/state.ts";
import { stepsOf } from "../step-place.ts";
import { commitStage, jobOf, lastStepOf, performGlobal, runStage } from "./run-stage.ts";
import { ordinalsOf, type RunningStages } from "./running-stages.ts";
import { findScanTargets, type ScanTarget } from "./scan-targets.ts";
import { openPrefetch, type StagePrefetch } from "./source-prefetch.ts";

/** The target stage, with all of its files in a layer. */
export interface BuiltTarget {
  stage: StageState;
  /** Records of every step performed, in the order of the Dockerfile. */
  steps: StepRecord[];
  /** The job of the target's last step. */
  job: BuildJob;
  /** What a scanner sees beside it, if there is one. */
  scanTargets: ScanTarget[];
}

/** Runs every stage, one after the other. With `--docker`, runs only those that the target needs, concurrently if possible. */
export async function runStages(running: RunningBuild): Promise<BuiltTarget> {
  const { dockerfile, dialect } = running.asked;
  const platforms = await findPlatforms(running);
  const steps = stepsOf(dockerfile);
  const records: StepRecord[] = [];
  const stage = targetStageName(dockerfile, running.asked.target);
  let globals = startGlobals({ platforms, stage }, running.asked.buildArgs);
  for (const step of steps) {
    if (step.stage !== null || step.instruction.name !== "ARG") break;
    globals = await performGlobal(step, step.instruction, globals, { running, steps, records });
  }
  const links = linkStages(dockerfile, globals, running.asked);
  const { graph, target, needed, triggersOf } = links;
  await requireBases(graph, needed, running);
  const failures = watchStages(running);
  const stateOf = once((index) => {
    const state = runStage(index, stages);
    if (dialect.buildsNeededStages) void failures.watch(state);
    return state;
  });
  const committed = once(async (index) => commitStage(index, await stateOf(index), stages));
  const sourcesOf = (instruction: Instruction) =>
    links.sourcesOf(instruction).map(instruction.name === "FROM" ? stateOf : committed);
  const { slots } = running.shared;
  // A step waits for other stages before it takes a slot, but an image's triggers are known only when its FROM is performed.
  const layerOf = (index: number | undefined) =>
    index === undefined ? undefined : slots.releaseDuring(() => committed(index)).then(({ layer }) => layer);
  const prefetches = new Map<number, StagePrefetch>();
  const contents = createSmallContents();
  const byStage = Map.groupBy(steps, ({ stage }) => stage?.index);
  const stages: RunningStages = {
    ...{ running, platforms, globals, steps, ordinals: ordinalsOf(dockerfile, dialect), records },
    uncached: uncachedStages(dockerfile, running.asked.uncachedStages),
    stepsOf: (index) => byStage.get(index) ?? [],
    prefetchOf(index) {
      // A stage that starts from another stage shares its prefetch, and waits for files that are still being sent.
      const from = dockerfile.stages[index]?.from;
      const [base] = from === undefined ? [] : links.sourcesOf(from);
      return prefetches.getOrInsertComputed(
        index,
        () => (base === undefined ? undefined : prefetches.get(base)) ?? openPrefetch(running, contents),
      );
    },
    results: {
      baseOf: (from) => sourcesOf(from)[0],
      triggersOf,
      linkTrigger: links.linkTrigger,
      sourceOf: (copy) => layerOf(links.sourcesOf(copy)[0]),
      mountedStage: (run, from) => layerOf(links.mountedStage(run, from)),
    },
    waitFor: (instruction) =>
      Promise.all(
        dialect.buildsNeededStages
          ? [instruction, ...triggersOf(instruction)].flatMap(sourcesOf)
          : instruction.name === "RUN"
            ? sourcesOf(instruction)
            : [],
      ),
    needsOf: (instruction) => [
      ...new Set([instruction, ...triggersOf(instruction)].flatMap(links.sourcesOf)),
    ],
    takeSlot: slots.acquire,
    areMany: () => dialect.buildsNeededStages && Math.max(needed.length, stateOf.begun.size) > 1,
  };
  try {
    if (dialect.buildsNeededStages) await failures.finish([...needed.map(stateOf), committed(target)]);
    else for (const index of needed) await stateOf(index);
    const stage = await committed(target);
    const job = jobOf(lastStepOf(target, stages), stages);
    const scanTargets =
      running.noteScanTargets === undefined
        ? []
        : await findScanTargets(
            {
              ...{ target, globals, stateOf, committed, ordinal: stages.ordinals.ofContext },
              // Triggers of an image may need more than the Dockerfile's own words.
              needed: dialect.buildsNeededStages
                ? [...stateOf.begun.keys()].sort((one, other) => one - other)
                : reachableFrom(graph, target),
            },
            job,
          );
    const isLeftOut = (index: number | undefined) => index !== undefined && !stateOf.begun.has(index);
    running.services.memory.forgetOthers((ordinal) => isLeftOut(stages.ordinals.stageOf(ordinal)));
    records.sort((one, other) => one.step - other.step);
    return { stage, steps: records, job, scanTargets };
  } finally {
    await Promise.all([...new Set(prefetches.values())].map(({ stop }) => stop()));
  }
}

/**
 * Waits for stages to end. The first failure stops the others and becomes the build's error. An image that the service has lost
 * stops nothing: the next round finds the layers that the others make meanwhile.
 */
function watchStages({ stop }: RunningBuild) {
  const failures: unknown[] = [];
  const lost: unknown[] = [];
  const watch = (stage: Promise<unknown>): Promise<unknown> =>
    stage.catch((error: unknown) => {
      if (error instanceof EvictedImageError) lost.push(error);
      else {
        failures.push(error);
        stop(new AbandonedError());
      }
    });
  return {
    watch,
    async finish(stages: readonly Promise<unknown>[]): Promise<void> {
      await Promise.all(stages.map(watch));
      for (const error of [...failures, ...lost]) throw error;
    },
  };
}

/** Refuses, before anything is run, an image that the service can't have. */
async function requireBases(
  { nodes }: BuildGraph,
  needed: readonly number[],
  running: RunningBuild,
): Promise<void> {
  for (const index of needed) {
    for (const { instruction, reference, target, kind } of nodes[index]?.edges ?? []) {
      const require = (image: string) => requireBase(image, running.services.supports);
      const isSkipped = kind !== "from" && !running.asked.dialect.copiesFromImages;
      if (isSkipped || (target.kind !== "image" && target.kind !== "context")) continue;
      await withLocation(running.asked, instruction, async () => {
        if (target.kind === "image") await require(reference);
        else if (target.context.kind === "image") await require(target.context.reference);
        else if (kind === "from") await explainDirectoryBase(target.context, () => require(scratch));
      });
    }
  }
}

/** Calls `action` once for each index, and returns the same result each time. */
function once<Result>(action: (index: number) => Promise<Result>) {
  const begun = new Map<number, Promise<Result>>();
  const call = (index: number) => begun.getOrInsertComputed(index, () => action(index));
  return Object.assign(call, { begun });
}

/** Returns `undefined` if nothing depends on the platforms. */
async function findPlatforms({ asked, services }: RunningBuild): Promise<BuildPlatforms | undefined> {
  if (asked.platform === undefined && !dependsOnPlatform(asked.dockerfile)) return undefined;
  return buildPlatforms(asked.platform, services.supports);
}
