import type { ArchiveEntry } from "../../src/image/archive-entry.ts";
import { digestOf } from "../../src/image/digest.ts";
import {
  createImageLayout,
  type Descriptor,
  type ImageLayout,
  mediaTypes,
} from "../../src/image/oci-layout.ts";
import { writeTar } from "../../src/image/tar-writer.ts";

export interface PlatformImage {
  /** As Go names it. */
  architecture: "amd64" | "arm64";
  /** From the bottom up. */
  layers: readonly (readonly ArchiveEntry[])[];
}

export interface ImageDescription {
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
      layout.write(`${mediaTypes.layer}+gzip`, Bun.gzipSync(archive, { level: 9, library: "libdeflate" })),
    ),
  };
  return layout.write(mediaTypes.manifest, JSON.stringify(manifest));
}
