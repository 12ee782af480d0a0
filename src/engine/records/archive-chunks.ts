/** Chunks of archives that are made of files. */
import { closeSync, constants, readSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { openForReading } from "../../open-for-reading.ts";
import { createPace } from "../../pace.ts";
import type { Path } from "../system/path.ts";

/** The size of a chunk, and of a read from a file. */
const chunkBytes = 256 * 1024;

/** Joins small blocks to chunks, and gives way to other work meanwhile. */
export async function* inChunks(
  blocks: Iterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const pace = createPace(signal);
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for (const block of blocks) {
    if (bytes + block.byteLength > chunkBytes && bytes > 0) {
      yield joined(waiting);
      waiting = [];
      bytes = 0;
    }
    waiting.push(block);
    bytes += block.byteLength;
    const pause = pace.step();
    if (pause !== undefined) await pause;
  }
  yield joined(waiting);
}

/** Joins blocks. A single one is not copied: a copy of a large file's content would take as long as reading it. */
function joined(blocks: readonly Uint8Array[]): Uint8Array {
  const [first, ...others] = blocks;
  return first !== undefined && others.length === 0 ? first : Buffer.concat(blocks);
}

export function* contentBlocks(path: Path, size: number): Generator<Uint8Array> {
  if (size === 0) return;
  const descriptor = openForReading(path, constants.O_NOFOLLOW);
  try {
    for (let left = size; left > 0; ) {
      const chunk = Buffer.allocUnsafe(Math.min(left, chunkBytes));
      const count = readSync(descriptor, chunk);
      if (count === 0) throw new BoughError(`${path} has become shorter while it was read`);
      yield chunk.subarray(0, count);
      left -= count;
    }
  } finally {
    closeSync(descriptor);
  }
}
