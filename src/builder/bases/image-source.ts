import { isSamePlatform } from "../../image/platform.ts";
import { baseHash } from "../cache/chain-hash.ts";
import { imageReference } from "../contexts/named-context.ts";
import type { BuildJob } from "../job.ts";
import type { Layer, LosableImage } from "../state/layer.ts";
import { findLockedImage } from "./locked-image.ts";

/** An image that a COPY or a mount takes files from, and the chain hash that stands for its contents. */
export interface ImageSource {
  /** UUID. */
  image: string;
  hash: string;
  /** Set if the service may have lost the image: then the build can make or import it again. */
  losable: LosableImage | undefined;
}

/** Returns the image that `from` names. `stage`: the result of the stage that has this name. */
export async function findImageSource(
  from: string,
  stage: Layer | undefined,
  build: BuildJob,
): Promise<ImageSource> {
  if (stage !== undefined) return { image: stage.image, hash: stage.hash, losable: stage };
  const { build: own, target } = build.platforms ?? {};
  // As in Docker, whatever the platform of the stage itself.
  const platform = own && target && !isSamePlatform(own, target) ? target : undefined;
  const found = await findLockedImage(imageReference(from, build.asked.contexts), platform, build);
  const hash = baseHash(found, build.services.service);
  const { uuid: image, isRemembered } = found;
  // Otherwise the service has just confirmed that it has the image.
  const losable = isRemembered === true ? ({ isRemembered, hash, image } as const) : undefined;
  return { image, hash, losable };
}
