/** A thread's own program: compresses the blocks that it is sent, and answers with each in turn. */
import { gzipBlock } from "./gzip-block.ts";

declare const self: Worker;

self.onmessage = ({ data: block }: MessageEvent<Uint8Array<ArrayBuffer>>) => {
  const packed = gzipBlock(block);
  self.postMessage(packed, [packed.buffer]);
};
