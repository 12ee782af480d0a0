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

/** The media types of indexes: OCI's and Docker's. */
export const indexTypes: readonly string[] = [
  mediaTypes.index,
  "application/vnd.docker.distribution.manifest.list.v2+json",
];

/** Returns the media type of a layer with this compression. */
export function layerMediaType(compression: Compression): string {
  return compression === "none" ? mediaTypes.layer : `${mediaTypes.layer}+${compression}`;
}

/** The annotation by which an index names an image. */
export const nameAnnotation = "org.opencontainers.image.ref.name";

/** containerd's annotation for the whole name, which Docker reads, too. */
export const containerdName = "io.containerd.image.name";
