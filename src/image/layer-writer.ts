/** Layers of an image that is written: they are archived and compressed, or their stored blobs are used. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../errors.ts";
import { wording } from "../messages/wording.ts";
import { createSemaphore } from "../semaphore.ts";
import { type Compression, type Compressor, createCompressor, decompress } from "./compression.ts";
import { type LayerBlob, writeLayerBlob } from "./layer-header.ts";
import type { Descriptor } from "./oci-layout.ts";
import { type OutputFile, type OutputFiles, writeToDirectory } from "./output-files.ts";

export interface LayerContent {
  /** Identifies this archive within the service, if that is possible. */
  id?: string;
  /** Set if `open` returns the layer's blob as it was stored before, instead of a plain archive. */
  stored?: LayerBlob | undefined;
  /** Addresses of registries' repositories that may have the blob: `docker://HOST/NAME`. */
  sources?: readonly string[] | undefined;
  /** The approximate number of bytes that `open` returns, for messages. */
  size?: number | undefined;
  /** Packs the layer without passing it through this thread; `undefined` if it has to be opened. Not for `stored` blobs that stay. */
  pack?: ((job: Omit<PackJob, "signal" | "clampTo">) => Promise<LayerBlob | undefined>) | undefined;
  /** Returns the uncompressed archive, or the `stored` blob. Not called if `known` is set. */
  open(): Promise<AsyncIterable<Uint8Array>>;
  /** The blob of an earlier write. If it is set, the layer is neither read nor written. */
  known?: LayerBlob | undefined;
  /** Called with the written blob. */
  onWritten?(blob: LayerBlob): void;
}

/** The settings for packing a layer into an existing file, from a position on. */
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

/** The option of an image that concerns its stored layers. */
interface Recompression {
  /** True to compress stored blobs again that have another compression. */
  recompresses?: boolean;
}

/**
 * The stored blobs that are written unchanged: those that are `compressed` in any way (uncompressed ones, too, if layers are not
 * compressed), those whose compression is `equal` to that of the other layers, or `none`, since all layers must be uncompressed.
 */
type BlobReuse = "compressed" | "equal" | "none";

export function blobReuse({ recompresses }: Recompression, keepsStored = true): BlobReuse {
  if (!keepsStored) return "none";
  return recompresses === true ? "equal" : "compressed";
}

/** Returns a layer's blob if it is known without being read: that of an earlier write, or a stored one that stays as it is. */
export function knownBlob(
  { known, stored }: Pick<LayerContent, "known" | "stored">,
  image: Recompression,
  compression: Compression,
): LayerBlob | undefined {
  if (stored !== undefined && isKept(stored, blobReuse(image), compression)) return stored;
  return known;
}

function isKept(stored: LayerBlob, reuse: BlobReuse, compression: Compression): boolean {
  const current = compressionOf(stored);
  switch (reuse) {
    case "compressed":
      return current !== "none" || compression === "none";
    case "equal":
      return current === compression;
    case "none":
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
  reuse: BlobReuse,
  { place, write }: Pick<OutputFile, "place" | "write">,
): Promise<LayerBlob> {
  const { compression } = compressor;
  if (stored !== undefined && isKept(stored, reuse, compression)) {
    const { digest } = await writeLayerBlob(await open(), uncompressed, write);
    requireDigest(digest, stored.digest);
    return stored;
  }
  const packed = await pack?.({ ...place, compression, onRead: () => {} });
  if (stored === undefined) return packed ?? writeLayerBlob(await open(), compressor, write);
  const plain = async () => decompress(await open(), compressionOf(stored), stored.digest);
  const blob = packed ?? (await writeLayerBlob(await plain(), compressor, write));
  requireDigest(blob.diffId, stored.diffId);
  return blob;
}

const uncompressed: Pick<Compressor, "compression" | "compress"> = {
  compression: "none",
  compress: (chunks) => chunks,
};

function requireDigest(actual: string, expected: string): void {
  if (actual === expected) return;
  throw new BoughError(
    `a layer of the image is damaged: its digest is ${actual}, but ${expected} is expected`,
    {
      hint: wording`${{ command: "engine check", options: [{ option: "repair" }] }} removes damaged layers; then import the base image again.`,
    },
  );
}

/** Disposing it removes all files. */
interface PackedLayers extends Disposable {
  /** Packs one layer at a time, which keeps all threads busy. Rejects if `maxBytes` are not enough for its blob. */
  pack(layer: LayerContent, maxBytes?: number): Promise<PackedLayer>;
}

/** A layer that is ready to be sent, any number of times. Disposing it frees its space. */
interface PackedLayer extends Disposable {
  blob: LayerBlob;
  open(): AsyncIterable<Uint8Array>;
}

/** Keeps layers in files between packing and sending: a registry wants to know the size of a blob before its first byte. */
export function createPackedLayers({
  compression,
  recompresses = false,
  openScratch,
}: {
  compression: Compression;
  recompresses?: boolean | undefined;
  /** Makes a place for a directory of large temporary files. */
  openScratch(): Disposable & { path: string };
}): PackedLayers {
  const compressor = createCompressor(compression);
  const packing = createSemaphore(1);
  let scratch: (Disposable & { path: string }) | undefined;
  let files: OutputFiles | undefined;
  let count = 0;

  async function pack(layer: LayerContent, maxBytes = Number.POSITIVE_INFINITY): Promise<PackedLayer> {
    scratch ??= openScratch();
    const directory = scratch.path;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    files ??= writeToDirectory(directory);
    const { place, write, keep } = files.create();
    let left = maxBytes;
    const limited = (bytes: Uint8Array) => {
      left -= bytes.byteLength;
      if (left < 0) throw new BoughError(`its archive has more than ${maxBytes} bytes`);
      write(bytes);
    };
    const file = { place, write: limited };
    const blob = await writeLayer(layer, compressor, blobReuse({ recompresses }), file).catch((error) => {
      files?.[Symbol.dispose]();
      files = undefined;
      throw error;
    });
    // The name is not the digest: two layers may be the same blob, and the first may be disposed of before the other is read.
    const name = String(++count);
    keep(name, blob.size);
    const path = join(directory, name);
    return {
      blob,
      open: () => Bun.file(path).stream(),
      [Symbol.dispose]: () => rmSync(path, { force: true }),
    };
  }

  return {
    async pack(layer, maxBytes) {
      const release = await packing.acquire();
      try {
        return await pack(layer, maxBytes);
      } finally {
        release();
      }
    },
    [Symbol.dispose]() {
      compressor[Symbol.dispose]();
      files?.[Symbol.dispose]();
      scratch?.[Symbol.dispose]();
    },
  };
}
