import { BoughError } from "../../errors.ts";
import { chainHash } from "../cache/chain-hash.ts";
import { inputsOf, inputsText } from "../cache/step-inputs.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import type { FoundFiles } from "../copy/copy.ts";
import { knownHash, noteHash } from "../copy/copy-state.ts";
import { type BuildJob, type BuildServices, jobOn } from "../job.ts";
import { collectGarbage } from "../operations/gc.ts";
import type { Layer } from "../state/layer.ts";
import { type StageState, startStage, withLayer } from "../state/state.ts";
import type { Step } from "./step.ts";

/**
 * Finds the layer of a step's chain hash, or makes it: once, even if several stages want it. `files`: those that the step is to
 * stage. If they have not changed, the hash is known without reading them; see `copy-state.ts`.
 */
export async function findOrMake(
  step: Step,
  stage: StageState,
  given: BuildJob,
  files?: FoundFiles,
): Promise<StageState> {
  requireStartable(stage);
  const build = jobOn([stage.layer, ...(step.mounts?.losable ?? [])], given);
  const state = files?.state();
  const known = build.useCache
    ? knownHash(state, keyed(stage, step), step.directive, build.source)
    : undefined;
  if (known !== undefined && !build.services.memory.needsInputs(step, known)) {
    const found = await build.services.layers.find(known, stage.layer);
    if (found !== undefined) {
      files?.report();
      return withLayer(stage, await findOrMakeKeyed(known, { step, found }, stage, build));
    }
  }
  const { stage: whole, areSettled } = (await files?.stage()) ?? { stage, areSettled: false };
  if (files !== undefined && whole.staged.size === 0) return stage;
  collectGarbage(whole.staged.size);
  const hash = await chainHash(keyed(whole, step), step.directive, build.services.signal);
  if (areSettled) noteHash(hash, state, keyed(whole, step), step.directive, build.source);
  const found = build.useCache ? await build.services.layers.find(hash, stage.layer) : undefined;
  return withLayer(stage, await findOrMakeKeyed(hash, { step, found }, whole, build));
}

/** The same for a step whose chain hash is known. `found`: its layer in the cache. */
export async function findOrMakeKeyed(
  hash: string,
  { step, found }: { step: Step; found: Layer | undefined },
  stage: StageState,
  build: BuildJob,
): Promise<Layer> {
  const remembered: RememberedStep = {
    ordinal: step.ordinal,
    title: step.title,
    inputs: () => inputsOf(keyed(stage, step), step, build.asked.session),
    text: () => inputsText(keyed(stage, step), step, build.asked.session, build.services.signal),
  };
  let isMade = false;
  const run = async () => {
    isMade = true;
    // Loaded on demand: a build that finds all of its layers ends sooner.
    const { makeLayer } = await import("./make-layer.ts");
    return makeLayer(hash, step, remembered, stage, build);
  };
  const given = found ?? (await build.shared.layers(hash, run));
  const layer = found !== undefined || isMade ? given : ownLayer(given, step, stage, build.services);
  await build.services.memory.remember(remembered, layer.hash);
  const kept = found === undefined && !build.useCache ? { ...layer, isRebuilt: true } : layer;
  if (isMade) return kept;
  // Another stage with exactly the same step may have made it just now.
  const { image, from } = layer;
  build.emit({ type: "cached", title: step.title, layer: layer.hash, image, ...(from && { from }) });
  return { ...kept, cached: true };
}

/** Returns a layer that another stage has made, or another build at the same time: as a layer of this build's session. */
function ownLayer(
  layer: Layer,
  { kind, title }: Step,
  { layer: parent }: StageState,
  { layers }: BuildServices,
): Layer {
  const own = layers.findLocal(layer.hash, parent);
  if (own?.image === layer.image) return { ...layer, entry: own.entry };
  const { hash, image, operation, origin } = layer;
  return layers.put({
    hash,
    image,
    origin,
    parent,
    kind: kind === "files" ? "copy" : kind,
    title,
    operation: operation ?? undefined,
  });
}

/** Returns the part of a stage that a step's chain hash covers: files depend neither on variables nor on the user. */
function keyed(stage: StageState, { kind }: Step): StageState {
  return kind === "files" ? { ...startStage(stage.layer), staged: stage.staged } : stage;
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
