import { BoughError } from "../../errors.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { BuildJob, BuildServices, RunningBuild } from "../job.ts";
import type { EvictableImage, Layer } from "../state/layer.ts";
import type { StageState } from "../state/state.ts";

/** Thrown if the service has evicted an image that a step uses. The build has to start again without it. */
export class EvictedImageError extends Error {
  override readonly name = "MissingImageError";
  readonly lost: EvictableImage;

  constructor(lost: EvictableImage) {
    super(`image ${lost.image} is gone`);
    this.lost = lost;
  }
}

/**
 * Runs `action` for a stage. If the service says that something is missing, finds out what it is. Lost uploads are forgotten
 * here, too, and `action` is run once more, which sends them again. A layer's lost image ends in an `EvictedImageError`.
 */
export async function retryAfterEviction<Result>(
  stage: Pick<StageState, "layer" | "staged">,
  build: BuildJob,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    if (await isImageEvicted(stage.layer, build.services)) throw new EvictedImageError(stage.layer);
    if (!forgetUploads(stage, build)) throw await errorAfterEviction(stage.layer, error, build.services);
  }
  try {
    return await action();
  } catch (error) {
    throw error instanceof NotFoundError
      ? await errorAfterEviction(stage.layer, error, build.services)
      : error;
  }
}

/** Runs `action`, which may read an image. Throws an `EvictedImageError` if it fails because that image is lost. */
export async function detectEviction<Result>(
  image: EvictableImage | undefined,
  services: BuildServices,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (image === undefined || !(error instanceof NotFoundError)) throw error;
    throw (await isImageEvicted(image, services)) ? new EvictedImageError(image) : error;
  }
}

/**
 * Returns true if the service says that it has no such image. A service that can't be asked is assumed to have the layers of this
 * machine's own builds. A layer from a scope, or an image that is only copied from, needs proof, so its root directory is listed.
 */
export async function isImageEvicted(
  evictable: EvictableImage,
  { service }: BuildServices,
): Promise<boolean> {
  const { image } = evictable;
  const isThere = await service.hasImage(image);
  const needsProof = "isRemembered" in evictable || evictable.from !== undefined;
  if (isThere !== "unsupported" || !needsProof) return isThere === false;
  try {
    await service.listFiles(image, "/");
    return false;
  } catch (error) {
    // Anything but a list is no proof.
    if (error instanceof BoughError) return true;
    throw error;
  }
}

/** A layer is lost once before the build, and once again if the service's disk fails meanwhile, for example. */
const maxLosses = 2;

/**
 * Drops everything that bough remembers of a lost image, so that the next round makes or imports it again. Throws if the service
 * loses one layer again and again.
 *
 * @param losses counts the build's losses, by chain hash
 */
export function forgetImage(
  { lost }: EvictedImageError,
  losses: Map<string, number>,
  { services, emit }: RunningBuild,
): void {
  // Each scope may name another image that is gone.
  const isShared = "from" in lost && lost.from !== undefined;
  const count = (losses.get(lost.hash) ?? 0) + (isShared ? 0 : 1);
  losses.set(lost.hash, count);
  if (count > maxLosses)
    throw new BoughError(
      `the service keeps losing the image of layer:${lost.hash.slice(0, 12)}: image ${lost.image} is gone, too`,
      { hint: "Its log or its administrator may know why: its disk may be failing." },
    );
  emit({ type: "forgotten-layer", layer: lost.hash, image: lost.image });
  services.layers.forget(lost);
}

/** Returns true if there was anything to forget. */
function forgetUploads(stage: Pick<StageState, "staged">, { services, emit }: BuildJob): boolean {
  const missing = new Set<string>();
  for (const entry of stage.staged.values()) {
    if (entry.type !== "file" || services.store.uploads.get(entry.sha256) === undefined) continue;
    missing.add(entry.sha256);
    services.store.uploads.delete(entry.sha256);
  }
  if (missing.size > 0) emit({ type: "forgotten-files", files: missing.size });
  return missing.size > 0;
}

/** If the service can't be asked, an image of this build is assumed to exist: the error is the service's fault. */
async function errorAfterEviction(
  layer: Layer,
  error: NotFoundError,
  { service }: BuildServices,
): Promise<Error> {
  const isThere = await service.hasImage(layer.image);
  return isThere === true || (isThere === "unsupported" && !layer.cached)
    ? error
    : new EvictedImageError(layer);
}
