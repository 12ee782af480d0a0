import { availableParallelism } from "node:os";
import { leastBusy, startThread, type Thread } from "../../thread.ts";
import { gzipBlock } from "./gzip-block.ts";

type Block = Uint8Array<ArrayBuffer>;

interface Gzip {
  /** What the block is compressed. It is gone afterwards: its bytes may be another thread's. */
  pack(block: Block): Promise<Block>;
  close(): void;
}

/** Fewer blocks are compressed before a thread would have started. */
const blocksWithoutThreads = 4;
/** Six threads compress as fast as one reads and hashes. */
const maxThreads = 6;

/** Compresses blocks here, and once there are several on all processors: into the same bytes. */
export function createGzip(): Gzip {
  const threads: Thread<Block, Block>[] = [];
  let blocks = 0;
  return {
    async pack(block) {
      if (blocks++ < blocksWithoutThreads) return gzipBlock(block);
      if (threads.length < Math.min(availableParallelism(), maxThreads))
        threads.push(startThread("./image/gzip/gzip-thread.ts"));
      return leastBusy(threads)?.ask(block, { transfer: [block.buffer] }) ?? gzipBlock(block);
    },
    close() {
      for (const thread of threads) thread.close();
    },
  };
}
