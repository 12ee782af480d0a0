import type { FoundImage } from "../../service/service.ts";

/** An image to start or copy from. */
export interface BaseImage extends FoundImage {
  /** An earlier build has imported or tagged it; the service may have lost it since. */
  isRemembered?: true;
}

/** Declares images of registries to the service, without fetching their layers. */
export interface RemoteBases {
  /**
   * @param url `docker://HOST/NAME:TAG` or `docker://HOST/NAME@DIGEST`
   * @returns `undefined` if the image can't be declared: an import says why
   */
  declare(url: string, tag: string | undefined): Promise<FoundImage | undefined>;
}
