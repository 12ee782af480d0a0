/** Writes images in other programs' formats: OCI layouts, Docker's archives, and skopeo's directories. */

import { BoughError } from "../errors.ts";
import { type Annotations, annotationField } from "./annotations.ts";
import { type Attestation, putAttestations } from "./attestation.ts";
import { type Compression, type Compressor, createCompressor } from "./compress.ts";
import { decompress } from "./compression.ts";
import type { ImageConfig } from "./config.ts";
import { blobPath, digestOf, hexOf } from "./digest.ts";
import type { ImageOrigin } from "./history.ts";
import { type LayerBlob, writeLayerBlob } from "./layer-header.ts";
import { type Descriptor, mediaTypes, nameAnnotation } from "./oci-layout.ts";
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
  /** Called with the manifest's digest for the image's attestations. Only a layout can contain them. */
  attest?: Attest | undefined;
  /** True to compress stored blobs again that have another compression. */
  recompresses?: boolean;
}

/** `digest`: of the image's manifest. */
export type Attest = (image: ImageToWrite, digest: string) => Promise<readonly Attestation[]>;

export interface LayerContent {
  /** Identifies this archive within the service, if that is possible. */
  id?: string;
  /** Set if `open` returns the layer's blob as it was stored before, instead of a plain archive. */
  stored?: LayerBlob | undefined;
  /** About as many bytes as `open` returns, for people. */
  size?: number | undefined;
  /** Returns the uncompressed archive, or the `stored` blob. Not called if `known` is set. */
  open(): Promise<AsyncIterable<Uint8Array>>;
  /** The blob of an earlier write. If it is set, the layer is neither read nor written. */
  known?: LayerBlob | undefined;
  /** Called with the written blob. */
  onWritten?(blob: LayerBlob): void;
}

/** `manifests`: further manifests for the index, which an existing one names. */
export async function writeOciLayout(
  files: OutputFiles,
  image: ImageToWrite,
  {
    compression,
    name,
    manifests = [],
  }: { compression: Compression; name: string | undefined; manifests?: readonly unknown[] },
): Promise<WrittenImage> {
  const { layers, configDigest, manifest } = await writeParts(files, image, compression, blobPath);
  const written = await writeAttestations(files, image, manifest);
  const named = name === undefined ? {} : { annotations: { ...written.annotations, [nameAnnotation]: name } };
  putFile(files, "oci-layout", JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  putFile(files, "index.json", indexOf([...manifests, { ...written, ...named }]));
  files.finish();
  return { descriptor: written, configDigest, layers };
}

/** Writes an index of the image and its attestations. If there are none, returns the image's manifest. */
async function writeAttestations(
  files: OutputFiles,
  image: ImageToWrite,
  manifest: Descriptor,
): Promise<Descriptor> {
  const attestations = (await image.attest?.(image, manifest.digest)) ?? [];
  const described = { ...manifest, ...annotationField("manifest-descriptor", image.annotations) };
  if (attestations.length === 0) return described;
  const put = (mediaType: string, content: string) => putBlob(files, blobPath, mediaType, content);
  const attestation = putAttestations(manifest, attestations, put);
  const manifests = [{ ...described, platform: image.platform }, attestation];
  const index = put(mediaTypes.index, indexOf(manifests, annotationField("index", image.annotations)));
  return { ...index, ...annotationField("index-descriptor", image.annotations) };
}

function indexOf(manifests: readonly unknown[], annotations: Pick<Descriptor, "annotations"> = {}): string {
  return JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests, ...annotations });
}

/** https://github.com/containers/image/blob/main/docs/containers-transports.5.md */
export async function writeSkopeoDirectory(
  files: OutputFiles,
  image: ImageToWrite,
  compression: Compression,
): Promise<WrittenImage> {
  const { layers, configDigest, manifest } = await writeParts(
    files,
    image,
    compression,
    hexOf,
    "manifest.json",
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

async function writeParts(
  files: OutputFiles,
  image: ImageToWrite,
  compression: Compression,
  place: (digest: string) => string,
  manifestName?: string,
): Promise<{ layers: LayerBlob[]; configDigest: string; manifest: Descriptor }> {
  const layers = await writeLayers(files, image, compression, place);
  const config = putBlob(files, place, mediaTypes.config, configurationOf(image, layers));
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config,
    layers: layers.map(({ diffId: _, ...descriptor }) => descriptor),
    ...annotationField("manifest", image.annotations),
  };
  const placeOfManifest = manifestName === undefined ? place : () => manifestName;
  return {
    layers,
    configDigest: config.digest,
    manifest: putBlob(files, placeOfManifest, mediaTypes.manifest, JSON.stringify(manifest)),
  };
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
  const keeps: Keeps =
    image.recompresses === true && keepsStored ? "equal" : keepsStored ? "compressed" : "plain";
  for (const layer of image.layers) {
    if (layer.known !== undefined) {
      blobs.push(layer.known);
      continue;
    }
    const file = files.create();
    const blob = await writeLayer(layer, compressor, keeps, (bytes) => file.write(bytes));
    file.keep(place(blob.digest));
    layer.onWritten?.(blob);
    blobs.push(blob);
  }
  return blobs;
}

/**
 * Which stored blobs are written unchanged: those that are `compressed`, however (plain ones, too, if layers are not compressed),
 * or those whose compression is `equal` to that of the other layers. `plain`: none, since all layers must be plain.
 */
type Keeps = "compressed" | "equal" | "plain";

async function writeLayer(
  { stored, open }: LayerContent,
  compressor: Compressor,
  keeps: Keeps,
  write: (bytes: Uint8Array) => void,
): Promise<LayerBlob> {
  const content = await open();
  if (stored === undefined) return writeLayerBlob(content, compressor, write);
  const suffix = /\+(gzip|zstd)$/.exec(stored.mediaType)?.[1];
  const current = suffix === "gzip" || suffix === "zstd" ? suffix : "none";
  const isKept = {
    compressed: current !== "none" || compressor.compression === "none",
    equal: current === compressor.compression,
    plain: false,
  };
  if (isKept[keeps]) {
    const { diffId: _, ...blob } = await writeLayerBlob(content, uncompressed, write);
    requireSame(blob.digest, stored.digest);
    return stored;
  }
  const blob = await writeLayerBlob(decompress(content, current, stored.digest), compressor, write);
  requireSame(blob.diffId, stored.diffId);
  return blob;
}

const uncompressed: Pick<Compressor, "compression" | "compress"> = {
  compression: "none",
  compress: (chunks) => chunks,
};

function requireSame(actual: string, expected: string): void {
  if (actual === expected) return;
  throw new BoughError(
    `a layer of the image is damaged: its digest is ${actual}, but ${expected} is expected`,
    {
      hint: "`bough engine check --repair` removes damaged layers; then import the base image again.",
    },
  );
}

/** https://github.com/opencontainers/image-spec/blob/main/config.md */
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
