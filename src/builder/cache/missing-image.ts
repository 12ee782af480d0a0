import { NotFoundError } from "../../service/http/errors.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob, RunningBuild } from "../job.ts";
import type { Layer } from "./layer-cache.ts";

/** Thrown if the service no longer has the image of a cached layer. The build has to go back to before that layer. */
export class MissingImageError extends Error {
  override readonly name = "MissingImageError";
  readonly layer: Layer;

  constructor(layer: Layer) {
    super(`image ${layer.image} is gone`);
    this.layer = layer;
  }
}

/**
 * Runs `action` for a stage. If the service says that something is missing, finds out what it is. Lost uploads are forgotten
 * here, too, and `action` is run once more, which sends them again. A cached layer's lost image ends in a `MissingImageError`.
 */
export async function retryAfterLoss<Result>(
  stage: Pick<StageState, "layer" | "staged">,
  build: BuildJob,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    if (await isImageMissing(stage.layer, build)) throw new MissingImageError(stage.layer);
    if (!forgetUploads(stage, build)) throw await errorAfterLoss(stage.layer, error, build);
  }
  try {
    return await action();
  } catch (error) {
    throw error instanceof NotFoundError ? await errorAfterLoss(stage.layer, error, build) : error;
  }
}

/** Runs `action`, which may read the stage's image. Throws a `MissingImageError` if it fails because that image is lost. */
export async function detectLoss<Result>(
  stage: Pick<StageState, "layer"> | undefined,
  build: BuildJob,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (stage === undefined || !(error instanceof NotFoundError)) throw error;
    throw (await isImageMissing(stage.layer, build)) ? new MissingImageError(stage.layer) : error;
  }
}

/**
 * Returns true if the service says that it has no such image. A service that can't be asked is assumed to have the layers of this
 * machine's own builds. A layer from a scope, or an image that is copied from, needs proof, so the image's root directory is listed.
 */
export async function isImageMissing(
  { cached, image, from, isImport }: Layer,
  { service }: BuildJob,
): Promise<boolean> {
  const isThere = cached ? await service.hasImage(image) : true;
  const isAssumed = from === undefined && isImport !== true;
  if (isThere !== "unsupported" || isAssumed) return isThere === false;
  try {
    await service.listFiles(image, "/");
    return false;
  } catch (error) {
    if (error instanceof NotFoundError) return true;
    throw error;
  }
}

/** Drops everything that bough remembers of a layer whose image is missing, so that the next round makes it again. */
export function forgetLayer({ layer }: MissingImageError, { layers, emit }: RunningBuild): void {
  emit({ type: "forgotten-layer", layer: layer.hash, image: layer.image });
  layers.forget(layer);
}

/** Returns true if there was anything to forget. */
function forgetUploads(stage: Pick<StageState, "staged">, { store, emit }: BuildJob): boolean {
  const missing = new Set<string>();
  for (const entry of stage.staged.values()) {
    if (entry.type !== "file" || store.uploads.get(entry.sha256) === undefined) continue;
    missing.add(entry.sha256);
    store.uploads.delete(entry.sha256);
  }
  if (missing.size > 0) emit({ type: "forgotten-files", files: missing.size });
  return missing.size > 0;
}

/** Only the result of an earlier build can have been lost since; otherwise the error is the service's fault. */
async function errorAfterLoss(layer: Layer, error: NotFoundError, { service }: BuildJob): Promise<Error> {
  const isThere = layer.cached ? await service.hasImage(layer.image) : true;
  return isThere === true ? error : new MissingImageError(layer);
}
