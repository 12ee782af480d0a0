import { createGzip } from "./gzip/gzip-threads.ts";

export const compressions = ["gzip", "zstd", "none"] as const;
export type Compression = (typeof compressions)[number];

/** Fixed, so that the same bytes always make the same blocks, and so the same archive. */
const blockBytes = 1024 * 1024;
/** Blocks in progress at once: enough to keep all threads busy. */
const maxBlocks = 8;

/** Disposing it ends its threads. */
export interface Compressor extends Disposable {
  readonly compression: Compression;
  /** Every reader can decompress the result as one file. */
  compress(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/** Returns a compressor for any number of archives in sequence. It compresses several blocks at once. */
export function createCompressor(compression: Compression): Compressor {
  const gzip = createGzip();
  return {
    compression,
    compress(chunks) {
      if (compression === "none") return chunks;
      return inOrder(
        inBlocks(chunks),
        compression === "zstd" ? (block) => Bun.zstdCompress(block) : gzip.pack,
      );
    },
    [Symbol.dispose]: gzip.close,
  };
}

type Block = Uint8Array<ArrayBuffer>;

async function* inOrder(
  blocks: AsyncIterable<Block>,
  pack: (block: Block) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const waiting: Promise<Uint8Array>[] = [];
  for await (const block of blocks) {
    const packed = pack(block);
    // A reader that stops early never awaits it.
    packed.catch(() => undefined);
    waiting.push(packed);
    const first = waiting.length < maxBlocks ? undefined : waiting.shift();
    if (first !== undefined) yield await first;
  }
  for (const packed of waiting) yield await packed;
}

/** Yields blocks of equal size, except the last; one empty block if there are no bytes. */
async function* inBlocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Block> {
  let isFirst = true;
  let block = new Uint8Array(blockBytes);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let rest = chunk; rest.byteLength > 0; ) {
      const part = rest.subarray(0, blockBytes - filled);
      block.set(part, filled);
      filled += part.byteLength;
      rest = rest.subarray(part.byteLength);
      if (filled < blockBytes) continue;
      yield block;
      isFirst = false;
      block = new Uint8Array(blockBytes);
      filled = 0;
    }
  }
  if (filled > 0 || isFirst) yield block.subarray(0, filled);
}
