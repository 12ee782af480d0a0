import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "./archive-entry.ts";
import { writeTar } from "./tar.ts";

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

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

/** Writes an OCI image layout (image-spec 1.0) with one image for every platform under one tag; answers its digest. */
export function writeImageLayout(
  directory: string,
  images: readonly PlatformImage[],
  description: ImageDescription,
): string {
  mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
  const manifests = images.map((image) => ({
    ...writeManifest(directory, image, description),
    platform: { architecture: image.architecture, os: "linux" },
  }));
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
  const described = writeBlob(directory, mediaTypes.index, encode(index));
  const annotations = { "org.opencontainers.image.ref.name": description.tag };
  const top = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [{ ...described, annotations }] };
  writeFileSync(join(directory, "index.json"), encode(top));
  writeFileSync(join(directory, "oci-layout"), encode({ imageLayoutVersion: "1.0.0" }));
  return described.digest;
}

function writeManifest(directory: string, image: PlatformImage, description: ImageDescription): Descriptor {
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
    config: writeBlob(directory, mediaTypes.config, encode(configuration)),
    layers: archives.map((archive) =>
      writeBlob(directory, mediaTypes.layer, Bun.gzipSync(archive, { level: 9, library: "libdeflate" })),
    ),
  };
  return writeBlob(directory, mediaTypes.manifest, encode(manifest));
}

function writeBlob(directory: string, mediaType: string, content: Uint8Array): Descriptor {
  const digest = digestOf(content);
  writeFileSync(join(directory, "blobs", digest.replace(":", "/")), content);
  return { mediaType, digest, size: content.byteLength };
}

function digestOf(content: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(content).digest("hex")}`;
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
