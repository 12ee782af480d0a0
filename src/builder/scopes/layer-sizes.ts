import { BoughError } from "../../errors.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { ScopeService } from "./index-images.ts";
import type { Entry } from "./scope-index.ts";

/** Builds have fewer new steps, and each takes a request. */
const maxMeasured = 200;
const maxConcurrent = 4;

/** Notes how much each layer adds to its image, where that is not known and the service can tell. */
export async function measureLayers(
  layers: readonly Entry<"layers">[],
  service: ScopeService,
  signal: AbortSignal,
): Promise<void> {
  const unknown = layers.filter(({ bytes }) => bytes === null).slice(0, maxMeasured);
  if (unknown.length === 0 || !(await service.capabilities.extensions()).has("layer-sizes")) return;
  await forEachConcurrently(unknown, maxConcurrent, signal, async (layer) => {
    try {
      // The last one is the uppermost.
      layer.bytes = (await service.layerSizes(layer.image)).at(-1)?.size ?? null;
    } catch (error) {
      // It is for people to read, and the index is of use without it.
      if (signal.aborted || !(error instanceof BoughError)) throw error;
    }
  });
}
