import { availableParallelism } from "node:os";
import { threadUrl } from "../../thread-url.ts";
import { gzipBlock } from "./gzip-block.ts";

export interface Gzip {
  /** What the block is compressed. It is gone afterwards: its bytes may be another thread's. */
  pack(block: Uint8Array<ArrayBuffer>): Promise<Uint8Array>;
  close(): void;
}

/** Fewer blocks are compressed before a thread would have started. */
const blocksWithoutThreads = 4;
/** More compress faster than one thread reads and hashes. */
const maxThreads = 6;

/** Compresses blocks here, and once there are several on all processors: into the same bytes. */
export function createGzip(): Gzip {
  const threads: Thread[] = [];
  let blocks = 0;
  return {
    async pack(block) {
      if (blocks++ < blocksWithoutThreads) return gzipBlock(block);
      if (threads.length < Math.min(availableParallelism(), maxThreads)) threads.push(startThread());
      return threads.reduce((one, other) => (other.waiting() < one.waiting() ? other : one)).pack(block);
    },
    close() {
      for (const thread of threads) thread.close();
    },
  };
}

interface Thread extends Gzip {
  /** How many blocks it has still to compress. */
  waiting(): number;
}

function startThread(): Thread {
  const worker = new Worker(threadUrl("./image/gzip/gzip-thread.ts"));
  let waiting: PromiseWithResolvers<Uint8Array>[] = [];
  worker.onmessage = ({ data }: MessageEvent<Uint8Array>) => waiting.shift()?.resolve(data);
  worker.onerror = (event) => {
    for (const { reject } of waiting) reject(new Error(event.message));
    waiting = [];
  };
  return {
    waiting: () => waiting.length,
    pack(block) {
      const packed = Promise.withResolvers<Uint8Array>();
      waiting.push(packed);
      worker.postMessage(block, [block.buffer]);
      return packed.promise;
    },
    close: () => worker.terminate(),
  };
}
