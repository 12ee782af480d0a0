/** Started by upload-stream.test.ts: uploads a stream of known or unknown length, and prints the memory that it took. */
import { readFileSync } from "node:fs";
import { clientOf } from "./client.ts";

const [url = "", length = "0", known] = process.argv.slice(2);
const block = new Uint8Array(65536).fill(7);
let left = Number(length);
const source = new ReadableStream<Uint8Array>({
  pull(controller) {
    if (left <= 0) return controller.close();
    controller.enqueue(block.slice(0, left));
    left -= block.byteLength;
  },
});
const contentLength = known === undefined ? undefined : Number(length);
const { size } = await clientOf(url).service.uploadStream(source, { contentLength });
const peakKibibytes = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
process.stdout.write(JSON.stringify({ size, peakMebibytes: Number(peakKibibytes) / 1024 }));
