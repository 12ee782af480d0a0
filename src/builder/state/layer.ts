import type { LayerOrigin } from "./layer-origin.ts";

/** The image that an instruction has made. */
export interface Layer {
  /** Its chain hash, 64 hex digits. */
  hash: string;
  /** The service's UUID of the image. */
  image: string;
  /** The entry of the session's history. */
  entry: number;
  /** True if no command had to run for it. */
  cached: boolean;
  /** The operation that made it, in this build or an earlier one; null for a FROM. */
  operation: string | null;
  /** True for the image of a FROM: no step of a build has made it. */
  isBase: boolean;
  origin: LayerOrigin;
  /** Set if the layer comes from a scope and was unknown on this machine. */
  from?: SharedFrom;
  /** True if this build made it without looking for it in the cache. */
  isRebuilt?: boolean;
}

/** An image that this build only copies from, and that an earlier build imported or tagged. It is not a layer of this build. */
interface RememberedImage {
  isRemembered: true;
  isRebuilt?: never;
  /** The chain hash that a FROM of it has. */
  hash: string;
  /** UUID. */
  image: string;
}

/** An image that a step uses. If the service has evicted it, the build forgets it and starts again. */
export type EvictableImage = Layer | RememberedImage;

/** The origin of a layer that another build has made. */
export interface SharedFrom {
  scope: string;
  /** Age of the layer. */
  ageSeconds: number;
}
