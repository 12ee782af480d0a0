/** A thread's own program: hashes the pieces that lie in buffers which it shares with the one that sends them. */
import type { HashAnswer, HashRequest } from "./stream-hash.ts";

declare const self: Worker;

const hasher = new Bun.CryptoHasher("sha256");
let buffers: Uint8Array[] = [];

self.onmessage = ({ data: request }: MessageEvent<HashRequest>) => {
  if (request === "end") return say({ digest: hasher.digest("hex") });
  if ("buffers" in request) {
    buffers = request.buffers.map((each) => new Uint8Array(each));
    return;
  }
  const { index, length } = request;
  hasher.update(buffers[index]?.subarray(0, length) ?? new Uint8Array());
  say({ index });
};

function say(answer: HashAnswer): void {
  self.postMessage(answer);
}
