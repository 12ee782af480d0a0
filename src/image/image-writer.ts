/** Writes images in other programs' formats: OCI layouts, Docker's archives, and skopeo's directories. */
import { type Attestation, putAttestations } from "./attestation-manifest.ts";
import { type Compression, createCompressor } from "./compression.ts";
import type { ImageConfig } from "./config.ts";
import { blobPath, digestOf, hexOf } from "./digest.ts";
import type { ImageOrigin } from "./history.ts";
import type { LayerBlob } from "./layer-header.ts";
import { blobReuse, type LayerContent, writeLayer } from "./layer-writer.ts";
import { type Descriptor, mediaTypes, toDockerMediaType } from "./oci-layout.ts";
import { type OutputFiles, putFile } from "./output-files.ts";

export interface WrittenImage {
  /** The descriptor of the manifest, or of the index of it and its attestations; of the configuration in Docker's archive. */
  descriptor: Descriptor;
  /** Docker's id of the image. */
  configDigest: string;
  layers: readonly LayerBlob[];
}

export interface ImageToWrite {
  config: ImageConfig;
  origin: ImageOrigin;
  platform: { os: string; architecture: string; variant?: string | undefined };
  /** ISO 8601. */
  created: string;
  /** The lowest first. */
  layers: readonly LayerContent[];
  /** `--annotation`. Docker's archives have none. */
  annotations?: Annotations | undefined;
  /** Annotations of what a tag names: the index, or the manifest of an image without one. */
  topAnnotations?: ReadonlyMap<string, string> | undefined;
  /** Called with the manifest's digest for the image's attestations. Only a layout can contain them. */
  attest?: Attest | undefined;
  /** True to compress stored blobs again that have another compression. */
  recompresses?: boolean;
  /** True if an index names the image even if it names nothing else. */
  hasIndex?: boolean;
  /** True for Docker's media types, if there is one for each part of the image. */
  hasDockersTypes?: boolean;
  /** The images of several platforms, if this stands for their index. Then `layers` are those of all images, one after the other. */
  parts?: readonly ImageToWrite[];
}

/** Joins the images of several platforms to one index. */
export function joinImages(
  images: readonly [ImageToWrite, ...ImageToWrite[]],
  { isIndex = false } = {},
): ImageToWrite {
  const [first] = images;
  if (images.length === 1 && !isIndex) return first;
  return { ...first, layers: images.flatMap(({ layers }) => layers), parts: images };
}

/** Returns an image's attestations. `digest` is that of its manifest. */
export type Attest = (image: ImageToWrite, digest: string) => Promise<readonly Attestation[]>;

/**
 * Writes an image as an OCI layout.
 *
 * @param entries annotations that name the image, for each of its entries in the index
 * @param manifests further entries of the index, from one that exists
 */
export async function writeOciLayout(
  files: OutputFiles,
  image: ImageToWrite,
  {
    compression,
    entries,
    manifests = [],
  }: { compression: Compression; entries: readonly Record<string, string>[]; manifests?: readonly unknown[] },
): Promise<WrittenImage> {
  const layers = await writeLayers(files, image, compression, blobPath);
  const written = await putManifests(image, layers, (mediaType, content) =>
    putBlob(files, blobPath, mediaType, content),
  );
  const { descriptor } = written;
  const named = entries.map((names) => ({
    ...descriptor,
    annotations: { ...descriptor.annotations, ...names },
  }));
  putFile(files, "oci-layout", JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  putFile(files, "index.json", indexOf([...manifests, ...(named.length === 0 ? [descriptor] : named)]));
  files.finish();
  return written;
}

/** Stores a configuration, a manifest or an index, each after the blobs that it refers to. */
type PutBlob = (mediaType: string, content: string) => Descriptor;

/**
 * Puts an image's configuration and manifest, and the index of it and its attestations, if it has any. For several platforms, the
 * index names the images of all, and then their attestations.
 */
export async function putManifests(
  image: ImageToWrite,
  layers: readonly LayerBlob[],
  put: PutBlob,
): Promise<WrittenImage> {
  const manifests: (Descriptor & Pick<ImageToWrite, "platform">)[] = [];
  const attestations: unknown[] = [];
  const configs: string[] = [];
  const typeOf = mediaTypesOf(image, layers);
  const { parts = [image], topAnnotations: top = new Map<string, string>() } = image;
  const hasIndex =
    image.parts !== undefined || image.hasIndex === true || parts.some(({ attest }) => attest !== undefined);
  let from = 0;
  for (const part of parts) {
    const own = layers.slice(from, from + part.layers.length);
    from += own.length;
    const { configDigest, manifest } = putManifest(part, own, put, {
      typeOf,
      top: hasIndex ? undefined : top,
    });
    const attested = (await part.attest?.(part, manifest.digest)) ?? [];
    const described = { ...manifest, ...annotationField("manifest-descriptor", part.annotations) };
    manifests.push({ ...described, platform: part.platform });
    if (attested.length > 0) attestations.push(putAttestations(manifest, attested, put));
    configs.push(configDigest);
  }
  const [only, ...others] = manifests;
  if (only !== undefined && !hasIndex) {
    const { platform: _, ...descriptor } = only;
    return { descriptor, configDigest: configs[0] ?? "", layers };
  }
  const annotations = annotationField("index", image.annotations, top);
  const mediaType = typeOf(mediaTypes.index);
  const index = put(mediaType, indexOf([...manifests, ...attestations], { mediaType, ...annotations }));
  const descriptor = { ...index, ...annotationField("index-descriptor", image.annotations) };
  // Docker's id of an image for several platforms is the digest of its index.
  return { descriptor, configDigest: others.length > 0 ? index.digest : (configs[0] ?? ""), layers };
}

function indexOf(
  manifests: readonly unknown[],
  {
    mediaType = mediaTypes.index,
    ...annotations
  }: { mediaType?: string } & Pick<Descriptor, "annotations"> = {},
): string {
  return JSON.stringify({ schemaVersion: 2, mediaType, manifests, ...annotations });
}

/** Returns a function from OCI's media types to those of the image: all of them are Docker's, or none, as in BuildKit. */
function mediaTypesOf(image: ImageToWrite, layers: readonly LayerBlob[]): (mediaType: string) => string {
  const { hasDockersTypes, parts = [image] } = image;
  const isPossible =
    parts.every(({ attest }) => attest === undefined) &&
    layers.every(({ mediaType }) => toDockerMediaType(mediaType) !== undefined);
  if (hasDockersTypes !== true || !isPossible) return (mediaType) => mediaType;
  return (mediaType) => toDockerMediaType(mediaType) ?? mediaType;
}

/** Writes an image in the format of skopeo's `dir:` (https://github.com/containers/image/blob/main/docs/containers-transports.5.md). */
export async function writeSkopeoDirectory(
  files: OutputFiles,
  image: ImageToWrite,
  compression: Compression,
): Promise<WrittenImage> {
  const layers = await writeLayers(files, image, compression, hexOf);
  const { configDigest, manifest } = putManifest(image, layers, (mediaType, content) =>
    putBlob(files, mediaType === mediaTypes.manifest ? () => "manifest.json" : hexOf, mediaType, content),
  );
  putFile(files, "version", "Directory Transport Version: 1.1\n");
  files.finish();
  return { descriptor: manifest, configDigest, layers };
}

/** Writes an archive for `docker load`, with uncompressed layers. */
export async function writeDockerArchive(
  files: OutputFiles,
  image: ImageToWrite,
  names: readonly string[],
): Promise<WrittenImage> {
  const layerName = (digest: string) => `${hexOf(digest)}.tar`;
  const layers = await writeLayers(files, image, "none", layerName, false);
  const config = configurationOf(image, layers);
  const digest = digestOf(config);
  putFile(files, `${hexOf(digest)}.json`, config);
  const parts = {
    Config: `${hexOf(digest)}.json`,
    RepoTags: names.length === 0 ? null : names,
    Layers: layers.map(({ digest }) => layerName(digest)),
  };
  putFile(files, "manifest.json", JSON.stringify([parts]));
  files.finish();
  const descriptor = { mediaType: mediaTypes.config, digest, size: Buffer.byteLength(config) };
  return { descriptor, configDigest: digest, layers };
}

function putManifest(
  image: ImageToWrite,
  layers: readonly LayerBlob[],
  put: PutBlob,
  {
    typeOf = (mediaType) => mediaType,
    top,
  }: { typeOf?: (mediaType: string) => string; top?: ReadonlyMap<string, string> | undefined } = {},
): { configDigest: string; manifest: Descriptor } {
  const config = put(typeOf(mediaTypes.config), configurationOf(image, layers));
  const mediaType = typeOf(mediaTypes.manifest);
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config,
    layers: layers.map(({ diffId: _, ...descriptor }) => ({
      ...descriptor,
      mediaType: typeOf(descriptor.mediaType),
    })),
    ...annotationField("manifest", image.annotations, top),
  };
  return { configDigest: config.digest, manifest: put(mediaType, JSON.stringify(manifest)) };
}

function putBlob(
  files: OutputFiles,
  place: (digest: string) => string,
  mediaType: string,
  content: string,
): Descriptor {
  const digest = digestOf(content);
  putFile(files, place(digest), content);
  return { mediaType, digest, size: Buffer.byteLength(content) };
}

async function writeLayers(
  files: OutputFiles,
  image: ImageToWrite,
  compression: Compression,
  place: (digest: string) => string,
  keepsStored = true,
): Promise<LayerBlob[]> {
  const blobs: LayerBlob[] = [];
  using compressor = createCompressor(compression);
  const reuse = blobReuse(image, keepsStored);
  for (const layer of image.layers) {
    if (layer.known !== undefined) {
      blobs.push(layer.known);
      continue;
    }
    const file = files.create();
    const blob = await writeLayer(layer, compressor, reuse, file);
    file.keep(place(blob.digest), blob.size);
    layer.onWritten?.(blob);
    blobs.push(blob);
  }
  return blobs;
}

/** Returns an image's configuration as JSON (https://github.com/opencontainers/image-spec/blob/main/config.md). */
function configurationOf(
  { config, origin, platform, created }: ImageToWrite,
  blobs: readonly LayerBlob[],
): string {
  const { os, architecture, variant } = platform;
  return JSON.stringify({
    created,
    ...(origin.author === undefined ? {} : { author: origin.author }),
    architecture,
    ...(variant === undefined ? {} : { variant }),
    os,
    config,
    rootfs: { type: "layers", diff_ids: blobs.map(({ diffId }) => diffId) },
    history: origin.history,
  });
}

/**
 * The parts of an image that take annotations (https://github.com/opencontainers/image-spec/blob/main/annotations.md), by the names of
 * docker buildx. A descriptor is the part's entry in an index, or in a layout's list of images.
 */
export type AnnotatedPart = "manifest" | "manifest-descriptor" | "index" | "index-descriptor";

export type Annotations = Readonly<Partial<Record<AnnotatedPart, ReadonlyMap<string, string>>>>;

/** Returns the field of a part, sorted so that the same annotations make the same bytes. Returns no field if there are none. */
function annotationField(
  part: AnnotatedPart,
  annotations: Annotations | undefined,
  others: ReadonlyMap<string, string> = new Map(),
): { annotations?: Record<string, string> } {
  const own = [...(annotations?.[part] ?? []), ...others];
  if (own.length === 0) return {};
  return { annotations: Object.fromEntries(own.sort(([one], [other]) => (one < other ? -1 : 1))) };
}
