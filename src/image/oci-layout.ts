/** The parts of OCI image layouts: https://github.com/opencontainers/image-spec/blob/main/image-layout.md */
import type { Compression } from "./compression.ts";

/** Identifies a blob of a layout. */
export interface Descriptor {
  mediaType: string;
  digest: string;
  /** Bytes. */
  size: number;
  annotations?: Readonly<Record<string, string>>;
}

export const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
  /** The media type of in-toto statements, as in BuildKit. */
  statement: "application/vnd.in-toto+json",
} as const;

/** The type that an in-toto statement names itself: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md */
export const statementType = "https://in-toto.io/Statement/v1";

/** Docker's media types of the same formats. */
export const dockerMediaTypes = {
  index: "application/vnd.docker.distribution.manifest.list.v2+json",
  manifest: "application/vnd.docker.distribution.manifest.v2+json",
  config: "application/vnd.docker.container.image.v1+json",
  layer: "application/vnd.docker.image.rootfs.diff.tar",
} as const;

/** The media types of indexes: OCI's and Docker's. */
export const indexTypes: readonly string[] = [mediaTypes.index, dockerMediaTypes.index];

/** The media types of manifests: those of images, and those of indexes. */
export const manifestTypes: readonly string[] = [
  mediaTypes.manifest,
  dockerMediaTypes.manifest,
  ...indexTypes,
];

/** Returns the media type of a layer with this compression. */
export function layerMediaType(compression: Compression): string {
  return compression === "none" ? mediaTypes.layer : `${mediaTypes.layer}+${compression}`;
}

/** The annotation by which an index names an image. */
export const nameAnnotation = "org.opencontainers.image.ref.name";

/** containerd's annotation for the whole name, which Docker reads, too. */
export const containerdNameAnnotation = "io.containerd.image.name";

/** Pairs of OCI's media types and Docker's. Docker has none for layers in zstd. */
const pairs: readonly (readonly [oci: string, docker: string])[] = [
  [mediaTypes.index, dockerMediaTypes.index],
  [mediaTypes.manifest, dockerMediaTypes.manifest],
  [mediaTypes.config, dockerMediaTypes.config],
  [layerMediaType("none"), dockerMediaTypes.layer],
  [layerMediaType("gzip"), `${dockerMediaTypes.layer}.gzip`],
];

/** Returns Docker's media type for one of OCI's or its own; `undefined` if it has none. */
export function toDockerMediaType(mediaType: string): string | undefined {
  return pairs.find((pair) => pair.includes(mediaType))?.[1];
}

/** True for what a registry keeps as a manifest. */
export function isManifestType(mediaType: string): boolean {
  return manifestTypes.includes(mediaType);
}
