/** The program of the hashing thread, which shares the buffers of pieces with the thread that sends them. */
import { readSync } from "node:fs";
import type { FileRest, HashRequest, HashResponse } from "./stream-hash.ts";

declare const self: Worker;

const hasher = new Bun.CryptoHasher("sha256");
let buffers: Uint8Array[] = [];

self.onmessage = ({ data: request }: MessageEvent<HashRequest>) => {
  if (request === "end") return post({ digest: hasher.digest("hex") });
  if ("buffers" in request) {
    buffers = request.buffers.map((each) => new Uint8Array(each));
    return;
  }
  if ("rest" in request) return post({ digest: digestRest(request.rest) });
  const { index, length } = request;
  hasher.update(buffers[index]?.subarray(0, length) ?? new Uint8Array());
  post({ index });
};

/** Hashes the rest of the file. A file that has become shorter gives another digest, as any changed file does. */
function digestRest({ descriptor, from, size }: FileRest): string {
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  for (let at = from; at < size; ) {
    const length = readSync(descriptor, buffer, 0, Math.min(buffer.length, size - at), at);
    if (length === 0) break;
    hasher.update(buffer.subarray(0, length));
    at += length;
  }
  return hasher.digest("hex");
}

function post(response: HashResponse): void {
  self.postMessage(response);
}
