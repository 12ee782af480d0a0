import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Compression, createCompressor } from "../../image/compression.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { type LayerContent, packLayer } from "../../image/layer-writer.ts";
import { type OutputFiles, writeToDirectory } from "../../image/output-files.ts";
import { createSlots } from "../../slots.ts";
import { openScratch } from "../process/scratch.ts";

/** Disposing it removes all files. */
interface PackedLayers extends Disposable {
  /** Packs one layer at a time, which keeps all threads busy. */
  pack(layer: LayerContent): Promise<PackedLayer>;
}

/** A layer that is ready to be sent, any number of times. Disposing it frees its space. */
interface PackedLayer extends Disposable {
  blob: LayerBlob;
  open(): AsyncIterable<Uint8Array>;
}

/** A larger layer is kept in a file. */
const maxHeldBytes = 1024 * 1024;

/** Keeps layers between packing and sending: a registry wants to know the size of a blob before its first byte. */
export function createPackedLayers({
  compression,
  recompresses = false,
  environment,
}: {
  compression: Compression;
  recompresses?: boolean | undefined;
  environment: Readonly<Record<string, string | undefined>>;
}): PackedLayers {
  const compressor = createCompressor(compression);
  const packing = createSlots(1);
  let scratch: ReturnType<typeof openScratch> | undefined;
  let files: OutputFiles | undefined;
  let count = 0;
  const openFiles = () => {
    if (files !== undefined) return files;
    scratch = openScratch("push", environment);
    mkdirSync(scratch.path, { mode: 0o700 });
    files = writeToDirectory(scratch.path);
    return files;
  };

  async function pack(layer: LayerContent): Promise<PackedLayer> {
    let held: Uint8Array[] = [];
    let bytes = 0;
    let file: ReturnType<OutputFiles["create"]> | undefined;
    const blob = await packLayer(layer, compressor, { recompresses }, (chunk) => {
      bytes += chunk.byteLength;
      if (file === undefined && bytes > maxHeldBytes) {
        file = openFiles().create();
        for (const first of held) file.write(first);
        held = [];
      }
      // Whoever makes the chunk may use its memory again.
      if (file === undefined) held.push(chunk.slice());
      else file.write(chunk);
    });
    if (file === undefined) return { blob, open: () => chunksOf(held), [Symbol.dispose]: () => {} };
    // Two layers may be the same blob, and the first is done before the other.
    const name = String(++count);
    file.keep(name);
    const path = join(scratch?.path ?? "", name);
    return {
      blob,
      open: () => Bun.file(path).stream(),
      [Symbol.dispose]: () => rmSync(path, { force: true }),
    };
  }

  return {
    async pack(layer) {
      const release = await packing.take();
      try {
        return await pack(layer);
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

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
