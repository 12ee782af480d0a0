import { promisify } from "node:util";
import { constants, crc32, deflateRaw } from "node:zlib";

export const compressions = ["gzip", "zstd", "none"] as const;
export type Compression = (typeof compressions)[number];

/** The same bytes always make the same blocks, and so the same archive. */
const blockBytes = 1024 * 1024;
/** Blocks under way at once, each on a thread of the pool. */
const maxBlocks = 4;

/** Compresses block by block, several at once; the result is one stream that every reader knows. */
export async function* compress(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncGenerator<Uint8Array> {
  if (compression === "none") yield* chunks;
  else if (compression === "zstd") yield* inOrder(inBlocks(chunks), (block) => Bun.zstdCompress(block));
  else yield* gzip(inBlocks(chunks));
}

const deflate = promisify<Uint8Array, object, Buffer>(deflateRaw);

/** RFC 1952, without a time or a name. A flushed block ends at a byte: blocks make one stream, put one after the other. */
async function* gzip(blocks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let checksum = 0;
  let length = 0;
  yield new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
  yield* inOrder(blocks, (block) => {
    checksum = crc32(block, checksum);
    length += block.byteLength;
    return deflate(block, { finishFlush: constants.Z_SYNC_FLUSH });
  });
  const end = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  end.writeUInt32LE(checksum, 2);
  end.writeUInt32LE(length % 2 ** 32, 6);
  yield end;
}

async function* inOrder(
  blocks: AsyncIterable<Uint8Array>,
  pack: (block: Uint8Array) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const waiting: Promise<Uint8Array>[] = [];
  for await (const block of blocks) {
    const packed = pack(block);
    // Whoever stops reading leaves it behind.
    packed.catch(() => undefined);
    waiting.push(packed);
    const first = waiting.length < maxBlocks ? undefined : waiting.shift();
    if (first !== undefined) yield await first;
  }
  for (const packed of waiting) yield await packed;
}

/** All of one size but the last. */
async function* inBlocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
      block = new Uint8Array(blockBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield block.subarray(0, filled);
}
