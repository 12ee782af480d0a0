import type { FoundImage } from "../../service/service.ts";

/** An image to start or copy from. */
export interface BaseImage extends FoundImage {
  /** An earlier build has imported or tagged it; the service may have lost it since. */
  isRemembered?: true;
}
