import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf, hexOf } from "../../src/image/digest.ts";
import { type Descriptor, mediaTypes, nameAnnotation } from "../../src/image/oci-layout.ts";
import type { ArchiveEntry } from "./archive-entry.ts";
import { writeTar } from "./tar.ts";

export interface PlatformImage {
  /** The name in Go's terms. */
  architecture: "amd64" | "arm64";
  /** The layers from the bottom up. */
  layers: readonly (readonly ArchiveEntry[])[];
}

interface ImageDescription {
  tag: string;
  created: Date;
  /** The `config` of the image's configuration: `Env`, `User`, `Entrypoint`, `Labels`, ... */
  config: Readonly<Record<string, unknown>>;
}

/** Writes an OCI image layout (image-spec 1.0) with one image for every platform under one tag; returns its digest. */
export function writeImageLayout(
  directory: string,
  images: readonly PlatformImage[],
  description: ImageDescription,
): string {
  const layout = createImageLayout(directory);
  const manifests = images.map((image) => ({
    ...writeManifest(layout, image, description),
    platform: { architecture: image.architecture, os: "linux" },
  }));
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
  const described = layout.write(mediaTypes.index, JSON.stringify(index));
  layout.finish(described, description.tag);
  return described.digest;
}

function writeManifest(layout: ImageLayout, image: PlatformImage, description: ImageDescription): Descriptor {
  const { created, config } = description;
  const archives = image.layers.map((entries) => writeTar(entries, created));
  const configuration = {
    architecture: image.architecture,
    os: "linux",
    created: created.toISOString(),
    config,
    rootfs: { type: "layers", diff_ids: archives.map(digestOf) },
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: layout.write(mediaTypes.config, JSON.stringify(configuration)),
    layers: archives.map((archive) =>
      layout.write(`${mediaTypes.layer}+gzip`, Bun.gzipSync(archive, { level: 12, library: "libdeflate" })),
    ),
  };
  return layout.write(mediaTypes.manifest, JSON.stringify(manifest));
}

interface ImageLayout {
  write(mediaType: string, content: Uint8Array | string): Descriptor;
  /** Writes the index, with this image only. */
  finish(image: Descriptor, name: string): void;
}

/** Makes `directory` and its parents if they are missing. */
function createImageLayout(directory: string): ImageLayout {
  const blobs = join(directory, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  return {
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
