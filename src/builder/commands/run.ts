import type { Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { chainHash } from "../cache/chain-hash.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { jobOn } from "../cache/rebuilt.ts";
import { inputsOf, inputsText } from "../cache/step-inputs.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import { knownHash, noteHash } from "../copy/copy-state.ts";
import { type StageState, startStage, withLayer } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { stageDeferred } from "../staging/deferred-files.ts";
import { collectGarbage } from "../staging/gc.ts";
import { commitSpec, filesSpec, type RunSpec, runSpecOf } from "./run-spec.ts";

/**
 * Performs a RUN: finds the layer of its chain hash, or makes it by an operation. `ordinal`: the number of layer-making
 * instructions before it.
 */
export async function performRun(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const mounts =
    instruction.mounts.length === 0
      ? undefined
      : await (await import("../mounts/run-mounts.ts")).findMounts(instruction, stage, build);
  return makeLayer(runSpecOf(instruction, ordinal, stage, build, mounts), stage, build);
}

/** Makes a layer, at the end of a stage, of what no RUN has taken over. */
export async function commitPending(
  stage: StageState,
  place: Pick<RunSpec, "line" | "ordinal">,
  build: BuildJob,
): Promise<StageState> {
  if (stage.staged.size === 0 && !stage.workdirIsPending) return stage;
  return makeLayer(commitSpec(place, stage, build), stage, build);
}

/** Makes a layer of the files that an instruction has just staged, on a service that needs no command for it. */
export async function makeFilesLayer(
  instruction: Instruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (stage.staged.size === 0) return stage;
  return makeLayer(filesSpec(instruction, ordinal, build), stage, build);
}

/** Returns the part of a stage that a step's chain hash covers: files depend neither on variables nor on the user. */
function keyed(stage: StageState, { kind }: RunSpec): StageState {
  return kind === "files" ? { ...startStage(stage.layer), staged: stage.staged } : stage;
}

async function makeLayer(spec: RunSpec, stage: StageState, given: BuildJob): Promise<StageState> {
  requireStartable(stage);
  const build = jobOn([stage.layer, ...(spec.mounts?.losable ?? [])], given);
  const known = build.useCache ? knownHash(keyed(stage, spec), spec.directive, build) : undefined;
  if (known !== undefined && !build.memory.needsInputs(spec, known)) {
    const found = build.layers.find(known, stage.layer);
    if (found !== undefined) return withLayer(stage, await findOrRun(known, { spec, found }, stage, build));
  }
  const whole = await stageDeferred(stage);
  collectGarbage(whole.staged.size);
  const hash = await chainHash(keyed(whole, spec), spec.directive, build.signal);
  noteHash(hash, keyed(whole, spec), spec.directive, build);
  const found = build.useCache ? build.layers.find(hash, stage.layer) : undefined;
  return withLayer(stage, await findOrRun(hash, { spec, found }, whole, build));
}

/** `found`: the layer in the cache. */
export async function findOrRun(
  hash: string,
  { spec, found }: { spec: RunSpec; found: Layer | undefined },
  stage: StageState,
  build: BuildJob,
): Promise<Layer> {
  const remembered: RememberedStep = {
    ordinal: spec.ordinal,
    title: spec.title,
    inputs: () => inputsOf(keyed(stage, spec), spec, build.session),
    text: () => inputsText(keyed(stage, spec), spec, build.session, build.signal),
  };
  let isMade = false;
  const run = async () => {
    isMade = true;
    // Loaded on demand: a build that finds all of its layers ends sooner.
    const { runForLayer } = await import("./run-for-layer.ts");
    return runForLayer(hash, spec, remembered, stage, build);
  };
  const layer = found ?? (await build.shared.layers(hash, run));
  await build.memory.remember(remembered, layer.hash);
  const kept = found === undefined && !build.useCache ? { ...layer, isRebuilt: true } : layer;
  if (isMade) return kept;
  // Another stage with exactly the same step may have made it just now.
  const { image, from } = layer;
  build.emit({ type: "cached", title: spec.title, layer: layer.hash, image, ...(from && { from }) });
  return { ...kept, cached: true };
}

/** Linux starts no program with more in its arguments and environment (fs/exec.c, 3/4 of _STK_LIM). */
const maxEnvironment = 6 * 1024 * 1024;

/** Throws if the variables are too large: a few lines that double a value make gigabytes, to be hashed and sent with each RUN. */
function requireStartable({ env, args }: StageState): void {
  let length = 0;
  for (const [name, value] of env) length += name.length + value.length;
  for (const [name, { value = "" }] of args) length += name.length + value.length;
  if (length <= maxEnvironment) return;
  throw new BoughError(
    `ENV and ARG before this line have ${length} characters, but Linux can't start a program with more than ${maxEnvironment}`,
    { kind: "usage", hint: "Copy large values as files." },
  );
}
