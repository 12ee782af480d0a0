/** The jobs of steps that differ from that of their stage. */
import type { DirectoryContext } from "./contexts/named-context.ts";
import type { BuildJob } from "./job.ts";
import type { LosableImage } from "./state/layer.ts";

/**
 * Returns the job of a step that uses these layers. `--no-cache-filter` replaces layers that are cached. A step that uses one of
 * them is run again, too, since its own cached layer was made from the replaced one.
 */
export function jobOn(layers: readonly (LosableImage | undefined)[], build: BuildJob): BuildJob {
  return build.useCache && layers.some((layer) => layer?.isRebuilt === true)
    ? { ...build, useCache: false }
    : build;
}

/** Returns the job of a step whose files come from a named context instead of the build context. */
export async function inDirectory(build: BuildJob, directory: DirectoryContext): Promise<BuildJob> {
  const { inputs } = build;
  const { name } = directory;
  const { signal } = build.services;
  return {
    ...build,
    source: { ...build.source, ...(await directory.open({ signal, inputs })) },
    inputs: inputs && { ...inputs, file: (path, sha256) => inputs.file(path, sha256, name) },
  };
}
