import { BoughError } from "../../errors.ts";
import { chainHash } from "../cache/chain-hash.ts";
import type { StepKey } from "../cache/step-key.ts";
import { type BuildJob, jobUsing } from "../job.ts";
import type { Layer } from "../state/layer.ts";
import type { Step } from "./step.ts";

/**
 * Finds the layer of a step, or makes it: once, even if several stages want it. `hash`: of the step's key, if it is known already.
 */
export async function findOrMake(step: Step, given: BuildJob, hash?: string): Promise<Layer> {
  requireStartable(step.key);
  const build = jobUsing([step.key.parent, ...step.sources], given);
  const { services, useCache } = build;
  const own = hash ?? (await chainHash(step.key, services.signal));
  const inCache = async () => (useCache ? services.layers.find(own, step.key.parent) : undefined);
  const found = await (step.find ?? inCache)();
  if (found !== undefined) return takeFound(step, found, build);
  let isMade = false;
  const made = await build.shared.layers(own, async () => {
    isMade = true;
    // Loaded on demand: a build that finds all of its layers ends sooner.
    const { explainMiss } = await import("./explain-miss.ts");
    await explainMiss(step, own, build);
    // A user who asked only for the explanation has stopped the build.
    services.signal.throwIfAborted();
    return step.make(own, build);
  });
  if (!isMade) {
    // Another stage with exactly the same step may have made it just now.
    const layer = await takeFound(step, ownLayer(made, step, build), build);
    return useCache ? layer : { ...layer, isRebuilt: true };
  }
  await services.memory.remember(step, made.hash, services.signal);
  return useCache ? made : { ...made, isRebuilt: true };
}

/** Uses an existing layer as the step's. */
export async function takeFound(step: Step, layer: Layer, { services, emit }: BuildJob): Promise<Layer> {
  await services.memory.remember(step, layer.hash, services.signal);
  const { hash, image, from } = layer;
  emit({ type: "cached", title: step.title, layer: hash, image, ...(from && { from }) });
  return { ...layer, cached: true };
}

/** Returns a layer that another stage, or a concurrent build, has made, as a layer of this build's session. */
function ownLayer(
  layer: Layer,
  { history, title, key: { parent } }: Step,
  { services: { layers } }: Pick<BuildJob, "services">,
): Layer {
  const own = layers.findLocal(layer.hash, parent);
  if (own?.image === layer.image) return { ...layer, entry: own.entry };
  const { hash, image, operation, origin } = layer;
  return layers.put({
    ...{ hash, image, origin, parent, kind: history, title },
    operation: operation ?? undefined,
  });
}

/** Linux starts no program with more in its arguments and environment (fs/exec.c, 3/4 of _STK_LIM). */
const maxEnvironment = 6 * 1024 * 1024;

/** Throws if the variables are too large: a few lines that double a value make gigabytes, to be hashed and sent with each RUN. */
function requireStartable({ state }: StepKey): void {
  if (state === undefined) return;
  let length = 0;
  for (const [name, value] of state.env) length += name.length + value.length;
  for (const [name, { value = "" }] of state.args) length += name.length + value.length;
  if (length <= maxEnvironment) return;
  throw new BoughError(
    `ENV and ARG before this line have ${length} characters, but Linux can't start a program with more than ${maxEnvironment}`,
    { kind: "usage", hint: "Copy large values as files." },
  );
}
