import { BoughError } from "../../errors.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import { supportOf } from "../service-support.ts";
import type { ScopeService } from "./index-images.ts";
import type { Entry } from "./scope-index.ts";

/** The number of layers measured at most. Builds have fewer new steps, and each layer takes a request. */
const maxMeasured = 200;
const maxConcurrent = 4;

/** Notes how much each layer adds to its image, if that is unknown and the service reports it. */
export async function measureLayers(
  layers: readonly Entry<"layers">[],
  service: ScopeService,
  signal: AbortSignal,
): Promise<void> {
  const unknown = layers.filter(({ bytes }) => bytes === null).slice(0, maxMeasured);
  if (unknown.length === 0 || !(await supportOf(service).layerSizes())) return;
  await forEachConcurrently(unknown, maxConcurrent, signal, async (layer) => {
    try {
      // The last layer is the uppermost.
      layer.bytes = (await service.layerSizes(layer.image)).at(-1)?.size ?? null;
    } catch (error) {
      // The size is for people only, and the index is useful without it.
      if (signal.aborted || !(error instanceof BoughError)) throw error;
    }
  });
}
