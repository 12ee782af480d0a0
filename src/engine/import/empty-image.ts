import { chmodSync, mkdirSync } from "node:fs";
import { digestOf } from "../../image/oci-layout.ts";
import type { ImageParts } from "./image-parts.ts";

const bytes = new TextEncoder().encode(
  JSON.stringify({ config: {}, rootfs: { type: "layers", diff_ids: [] } }),
);

/** The image that `FROM scratch` starts from: no layers, and a configuration that says nothing. */
export const emptyImage: ImageParts = { config: { bytes, digest: digestOf(bytes) }, layers: [] };

/** The root directory of an image without layers, which no program has to unpack. */
export function makeEmptyRoot(directory: string): void {
  mkdirSync(directory);
  // Whatever this process's umask is.
  chmodSync(directory, 0o755);
}
