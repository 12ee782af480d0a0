import type { BuildJob } from "../job.ts";
import type { LosableImage } from "./layer-cache.ts";

/**
 * Returns the job of a step that uses these layers. `--no-cache-filter` replaces layers that are cached. A step that uses one of
 * them is run again, too, since its own cached layer was made from the replaced one.
 */
export function jobOn(layers: readonly (LosableImage | undefined)[], build: BuildJob): BuildJob {
  return build.useCache && layers.some((layer) => layer?.isRebuilt === true)
    ? { ...build, useCache: false }
    : build;
}
