/** Layers of an image that is written: read, packed, or taken as they were stored. */
import { BoughError } from "../errors.ts";
import { type Compression, type Compressor, decompress } from "./compression.ts";
import { type LayerBlob, writeLayerBlob } from "./layer-header.ts";
import type { Descriptor } from "./oci-layout.ts";
import type { OutputFile } from "./output-files.ts";

export interface LayerContent {
  /** Identifies this archive within the service, if that is possible. */
  id?: string;
  /** Set if `open` returns the layer's blob as it was stored before, instead of a plain archive. */
  stored?: LayerBlob | undefined;
  /** Addresses of registries' repositories that may have the blob: `docker://HOST/NAME`. */
  sources?: readonly string[] | undefined;
  /** About as many bytes as `open` returns, for people. */
  size?: number | undefined;
  /** Packs the layer without passing it through this thread; `undefined` if it has to be opened. Not for `stored` blobs. */
  pack?: ((job: Omit<PackJob, "signal" | "clampTo">) => Promise<LayerBlob | undefined>) | undefined;
  /** Returns the uncompressed archive, or the `stored` blob. Not called if `known` is set. */
  open(): Promise<AsyncIterable<Uint8Array>>;
  /** The blob of an earlier write. If it is set, the layer is neither read nor written. */
  known?: LayerBlob | undefined;
  /** Called with the written blob. */
  onWritten?(blob: LayerBlob): void;
}

/** How a layer is packed: into an existing file, from a position on. */
export interface PackJob {
  compression: Compression;
  /** The latest modification time, in seconds since the epoch; later ones are set to it. */
  clampTo: number | undefined;
  path: string;
  position: number;
  signal: AbortSignal;
  /** Called from time to time with the number of bytes that have been read. */
  onRead(bytes: number): void;
}

/** Options of an image that concern its stored layers. */
interface Packing {
  /** True to compress stored blobs again that have another compression. */
  recompresses?: boolean;
}

/**
 * Which stored blobs are written unchanged: those that are `compressed`, however (plain ones, too, if layers are not compressed),
 * or those whose compression is `equal` to that of the other layers. `plain`: none, since all layers must be plain.
 */
export type Keeps = "compressed" | "equal" | "plain";

export function keptBy({ recompresses }: Packing, keepsStored = true): Keeps {
  if (!keepsStored) return "plain";
  return recompresses === true ? "equal" : "compressed";
}

/** Returns a layer's blob if it is known without being read: that of an earlier write, or a stored one that stays as it is. */
export function knownBlob(
  { known, stored }: Pick<LayerContent, "known" | "stored">,
  image: Packing,
  compression: Compression,
): LayerBlob | undefined {
  if (stored !== undefined && isKept(stored, keptBy(image), compression)) return stored;
  return known;
}

function isKept(stored: LayerBlob, keeps: Keeps, compression: Compression): boolean {
  const current = compressionOf(stored);
  switch (keeps) {
    case "compressed":
      return current !== "none" || compression === "none";
    case "equal":
      return current === compression;
    case "plain":
      return false;
  }
}

function compressionOf({ mediaType }: Pick<Descriptor, "mediaType">): Compression {
  const suffix = /\+(gzip|zstd)$/.exec(mediaType)?.[1];
  return suffix === "gzip" || suffix === "zstd" ? suffix : "none";
}

/** Reads a layer, and writes its blob. */
export async function writeLayer(
  { stored, open, pack }: LayerContent,
  compressor: Compressor,
  keeps: Keeps,
  { place, write }: Pick<OutputFile, "place" | "write">,
): Promise<LayerBlob> {
  const { compression } = compressor;
  const packed = stored === undefined && (await pack?.({ ...place, compression, onRead: () => {} }));
  if (packed) return packed;
  const content = await open();
  if (stored === undefined) return writeLayerBlob(content, compressor, write);
  if (isKept(stored, keeps, compressor.compression)) {
    const { diffId: _, ...blob } = await writeLayerBlob(content, uncompressed, write);
    requireSame(blob.digest, stored.digest);
    return stored;
  }
  const plain = decompress(content, compressionOf(stored), stored.digest);
  const blob = await writeLayerBlob(plain, compressor, write);
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
