import { availableParallelism } from "node:os";
import { leastBusy, startThread, type Thread } from "../../thread.ts";
import { gzipBlock } from "./gzip-block.ts";

type Block = Uint8Array<ArrayBuffer>;

interface Gzip {
  /** Compresses a block, which must not be used afterwards: its memory may be moved to another thread. */
  pack(block: Block): Promise<Block>;
  close(): void;
}

/** Fewer blocks than this are compressed before a thread would have started. */
const blocksWithoutThreads = 4;
/** Six threads compress as fast as one thread reads and hashes. */
const maxThreads = 6;

/** Compresses the first blocks in this thread, and later ones in several threads. The output is the same. */
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
