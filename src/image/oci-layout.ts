/**
 * Writing OCI image layouts: a directory of contents named by their digests, and an index.
 * https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf, hexOf } from "./digest.ts";

/** Names a content of a layout. */
export interface Descriptor {
  mediaType: string;
  digest: string;
  /** Bytes. */
  size: number;
}

export const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
  /** in-toto's, as BuildKit has it. */
  statement: "application/vnd.in-toto+json",
} as const;

/** The annotation by which an index names an image. */
export const nameAnnotation = "org.opencontainers.image.ref.name";

export interface ImageLayout {
  /** Where contents are, each under its digest's digits. */
  blobs: string;
  write(mediaType: string, content: Uint8Array | string): Descriptor;
  /** Makes it the layout of one image. */
  finish(image: Descriptor, name: string): void;
}

/** `directory` is made where missing, with those above it. */
export function createImageLayout(directory: string): ImageLayout {
  const blobs = join(directory, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  return {
    blobs,
    write(mediaType, content) {
      const digest = digestOf(content);
      writeFileSync(join(blobs, hexOf(digest)), content);
      return { mediaType, digest, size: Buffer.byteLength(content) };
    },
    finish(image, name) {
      const manifests = [{ ...image, annotations: { [nameAnnotation]: name } }];
      const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
      writeFileSync(join(directory, "index.json"), JSON.stringify(index));
      writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
    },
  };
}
