import { availableParallelism } from "node:os";
import type { Transform } from "node:stream";
import { BoughError, messageOf } from "../errors.ts";
import { leastBusy, startThread, type Thread } from "../thread.ts";
import { compressBlock, mayShrink, storeBlock } from "./gzip/gzip-block.ts";

const chunkSize = 128 * 1024;

/** Detects a compression by the first bytes, whatever the file's name. */
export function detectCompression(beginning: Uint8Array): Compression | "bzip2" | "xz" {
  const starts = (...bytes: number[]) => bytes.every((byte, index) => beginning[index] === byte);
  if (starts(0x1f, 0x8b)) return "gzip";
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) return "zstd";
  if (starts(0x42, 0x5a, 0x68)) return "bzip2";
  return starts(0xfd, 0x37, 0x7a, 0x58, 0x5a) ? "xz" : "none";
}

/** Yields the decompressed content. Rejects if it is damaged or truncated. */
export async function* decompress(
  content: AsyncIterable<Uint8Array>,
  compression: Compression,
  name: string,
): AsyncGenerator<Uint8Array> {
  if (compression === "none") {
    yield* content;
    return;
  }
  // Imported only here, since loading these modules takes a good part of a short command's time.
  const { Readable } = await import("node:stream");
  const { pipeline } = await import("node:stream/promises");
  const { createGunzip, createZstdDecompress } = await import("node:zlib");
  const stream: Transform =
    compression === "gzip" ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  // The stream fails with the source's errors, too: these must not be reported as damage.
  let failure: unknown;
  const source = (async function* () {
    try {
      yield* content;
    } catch (error) {
      failure = error;
      throw error;
    }
  })();
  const piped = pipeline(Readable.from(source, { objectMode: false }), stream);
  piped.catch(() => undefined);
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
    await piped;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new BoughError(`${name} is damaged: ${messageOf(error)}`);
  } finally {
    stream.destroy();
  }
}

export const compressions = ["gzip", "zstd", "none"] as const;
export type Compression = (typeof compressions)[number];

/** Returns the compression that an option names: `uncompressed` is BuildKit's name for none. */
export function findCompression(name: string): Compression | undefined {
  return compressions.find((compression) => compression === (name === "uncompressed" ? "none" : name));
}

/** The size is fixed, so that the same bytes always make the same blocks, and so the same archive. */
const blockBytes = 1024 * 1024;
/** The number of blocks that are compressed at once: enough to keep all threads busy. */
const maxBlocks = 8;

/** Compresses archives. Disposing it ends its threads. */
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

/** Detects a layer's compression by its first bytes, not by manifest or file name. Throws if bough can't unpack it. */
export function detectLayerCompression(beginning: Uint8Array, name: string): Compression {
  const compression = detectCompression(beginning);
  if (compression !== "bzip2" && compression !== "xz") return compression;
  throw new BoughError(
    `${name} is compressed with ${compression}, which is not supported: expected gzip, zstd or no compression`,
  );
}

/** Returns the first bytes of a stream, by which its compression is detected, and the whole stream. */
export async function peekBeginning(
  content: AsyncIterable<Uint8Array>,
): Promise<{ bytes: AsyncIterable<Uint8Array>; beginning: Uint8Array }> {
  const chunks = content[Symbol.asyncIterator]();
  const { value: first = new Uint8Array() } = await chunks.next();
  const bytes = (async function* () {
    yield first;
    yield* { [Symbol.asyncIterator]: () => chunks };
  })();
  return { bytes, beginning: first.subarray(0, 8) };
}

interface Gzip {
  /** Compresses a block, which must not be used afterwards: its memory may be moved to another thread. */
  pack(block: Block): Promise<Block>;
  close(): void;
}

/** Fewer blocks than this are compressed before a thread would have started. */
const blocksWithoutThreads = 4;
/** Six threads compress as fast as one thread reads and hashes. */
const maxThreads = 6;

/**
 * Compresses the first blocks in this thread, and later ones in several threads. The output is the same. What doesn't shrink is
 * stored in this thread: another one would take longer to start.
 */
function createGzip(): Gzip {
  const threads: Thread<Block, Block>[] = [];
  let blocks = 0;
  return {
    async pack(block) {
      if (!mayShrink(block)) return storeBlock(block);
      if (blocks++ < blocksWithoutThreads) return compressBlock(block);
      if (threads.length < Math.min(availableParallelism(), maxThreads))
        threads.push(startThread("./image/gzip/gzip-thread.ts"));
      return leastBusy(threads)?.send(block, { transfer: [block.buffer] }) ?? compressBlock(block);
    },
    close() {
      for (const thread of threads) thread.close();
    },
  };
}
