import { digestOf } from "../../image/digest.ts";
import type { ImageParts } from "./image-parts.ts";

/** Returns the image that `FROM scratch` starts from: no layers, and an empty configuration. */
export function emptyImage(): ImageParts {
  const config = { config: {}, rootfs: { type: "layers", diff_ids: [] } };
  const bytes = new TextEncoder().encode(JSON.stringify(config));
  return { config: { bytes, digest: digestOf(bytes) }, layers: [] };
}
