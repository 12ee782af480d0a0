import { chmodSync, mkdirSync } from "node:fs";
import { digestOf } from "../../image/digest.ts";
import type { ImageParts } from "./image-parts.ts";

/** The image that `FROM scratch` starts from: no layers, and a configuration that says nothing. */
export function emptyImage(): ImageParts {
  const config = { config: {}, rootfs: { type: "layers", diff_ids: [] } };
  const bytes = new TextEncoder().encode(JSON.stringify(config));
  return { config: { bytes, digest: digestOf(bytes) }, layers: [] };
}

/** The root directory of an image without layers, which no program has to unpack. */
export function makeEmptyRoot(directory: string): void {
  mkdirSync(directory);
  // Whatever this process's umask is.
  chmodSync(directory, 0o755);
}
