/** Images of any bytes, including those that no builder would write. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type RawEntry, tarOf } from "./tar-bytes.ts";

export interface RawImage {
  /** The stored bytes of the layers, the lowest first. */
  layers: readonly Uint8Array[];
  /** Digests of the layers' contents. By default they are computed from layers that are plain or gzip. */
  diffIds?: readonly string[];
  /** More of the configuration. */
  config?: Readonly<Record<string, unknown>>;
  /** Changes the manifest. */
  manifest?: (manifest: RawManifest) => unknown;
  /** Changes the index. */
  index?: (index: { manifests: Record<string, unknown>[] }) => unknown;
}

export interface RawDescriptor {
  mediaType: string;
  digest: string;
  size: number;
}

export interface RawManifest {
  schemaVersion: number;
  config: RawDescriptor;
  layers: RawDescriptor[];
}

/** Contents by name. */
export type RawFiles = Map<string, Uint8Array>;

export const architecture = process.arch === "arm64" ? "arm64" : "amd64";

/** The files of an OCI image layout; its one image is `latest`. */
export function ociFiles(image: RawImage): RawFiles {
  const files: RawFiles = new Map([["oci-layout", encode({ imageLayoutVersion: "1.0.0" })]]);
  const manifest = addManifest(files, image);
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
  files.set("index.json", encode(image.index?.(index) ?? index));
  return files;
}

/** Adds a manifest, its configuration and its layers below `blobs`. */
export function addManifest(files: RawFiles, image: RawImage): RawDescriptor {
  const config = addBlob(files, configOf(image), "application/vnd.oci.image.config.v1+json");
  const layers = image.layers.map((layer) => addBlob(files, layer, layerType(layer)));
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = { schemaVersion: 2, mediaType, config, layers };
  return addBlob(files, encode(image.manifest?.(manifest) ?? manifest), mediaType);
}

export function addBlob(files: RawFiles, content: Uint8Array, mediaType: string): RawDescriptor {
  const digest = digestOf(content);
  files.set(`blobs/sha256/${digest.slice("sha256:".length)}`, content);
  return { mediaType, digest, size: content.byteLength };
}

/** The files that `docker save` wrote before version 25. `change` changes its `manifest.json`. */
export function dockerFiles(
  image: RawImage,
  change: (image: Record<string, unknown>) => unknown = (same) => same,
): RawFiles {
  const config = configOf(image);
  const name = `${digestOf(config).slice("sha256:".length)}.json`;
  const layers = image.layers.map((layer, index): [string, Uint8Array] => [
    `layer-${index}/layer.tar`,
    layer,
  ]);
  const described = { Config: name, RepoTags: ["app:1"], Layers: layers.map(([path]) => path) };
  return new Map([[name, config], ...layers, ["manifest.json", encode([change(described)])]]);
}

/** skopeo's `dir:` format. */
export function skopeoFiles(image: RawImage): RawFiles {
  const files: RawFiles = new Map();
  const manifest = addManifest(files, image);
  const flat = [...files].map(([name, content]): [string, Uint8Array] => [
    name === `blobs/sha256/${manifest.digest.slice("sha256:".length)}`
      ? "manifest.json"
      : name.slice("blobs/sha256/".length),
    content,
  ]);
  return new Map([...flat, ["version", Buffer.from("Directory Transport Version: 1.1\n")]]);
}

export function archiveOf(files: RawFiles, others: readonly RawEntry[] = []): Uint8Array<ArrayBuffer> {
  return tarOf([...others, ...[...files].map(([name, content]) => ({ name, content }))]);
}

export function writeRawFiles(directory: string, files: RawFiles): string {
  for (const [name, content] of files) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
  return directory;
}

function configOf(image: RawImage): Uint8Array {
  const diffIds = image.diffIds ?? image.layers.map((layer) => digestOf(unpacked(layer)));
  const rootfs = { type: "layers", diff_ids: diffIds };
  return encode({ architecture, os: "linux", config: {}, rootfs, ...image.config });
}

function unpacked(layer: Uint8Array): Uint8Array {
  return layer[0] === 0x1f && layer[1] === 0x8b ? Bun.gunzipSync(new Uint8Array(layer)) : layer;
}

function layerType(layer: Uint8Array): string {
  const suffix = layer[0] === 0x1f ? "+gzip" : layer[0] === 0x28 ? "+zstd" : "";
  return `application/vnd.oci.image.layer.v1.tar${suffix}`;
}

export function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

export function digestOf(content: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(content).digest("hex")}`;
}
