import { messageOf } from "../../errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { RunningBuild } from "../job.ts";
import type { StepRecord } from "../result.ts";

/** Returns the bytes that the layer of each step adds to its image; empty if the service can't be asked. */
export async function measureLayers(
  steps: readonly StepRecord[],
  { services, emit }: RunningBuild,
): Promise<ReadonlyMap<StepRecord, number>> {
  try {
    if (!(await services.supports.layerSizes())) return new Map();
    return await measure(steps, services.service);
  } catch (error) {
    services.signal.throwIfAborted();
    // The image exists, even if its layers can't be measured.
    const message = `cannot get the size of each layer: ${messageOf(error)}`;
    emit({ type: "warning", message, line: undefined });
    return new Map();
  }
}

async function measure(
  steps: readonly StepRecord[],
  service: Pick<ImageService, "layerSizes">,
): Promise<Map<StepRecord, number>> {
  const added = new Map<StepRecord, number>();
  /** Ids of the layers that each stage has before the step, by the stage's index. */
  const before = new Map<number, ReadonlySet<string>>();
  for (const step of steps) {
    if (step.image === null || step.stage === null) continue;
    const layers = await service.layerSizes(step.image);
    const known = before.get(step.stage.index);
    before.set(step.stage.index, new Set(layers.map(({ id }) => id)));
    // The layers of the base are not the stage's own.
    if (known === undefined) continue;
    added.set(
      step,
      layers.reduce((bytes, { id, size }) => (known.has(id) ? bytes : bytes + size), 0),
    );
  }
  return added;
}
