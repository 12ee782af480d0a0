import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../errors.ts";
import { createSlots } from "../slots.ts";
import { type Compression, createCompressor } from "./compression.ts";
import type { LayerBlob } from "./layer-header.ts";
import { keptBy, type LayerContent, writeLayer } from "./layer-writer.ts";
import { type OutputFiles, writeToDirectory } from "./output-files.ts";

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
  const packing = createSlots(1);
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
    const blob = await writeLayer(layer, compressor, keptBy({ recompresses }), file).catch((error) => {
      files?.[Symbol.dispose]();
      files = undefined;
      throw error;
    });
    // Two layers may be the same blob, and the first is done before the other.
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
      const release = await packing.take();
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
