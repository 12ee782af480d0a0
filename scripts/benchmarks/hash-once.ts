/** Hashes files one after the other on one processor: `hash-once.ts FILE...`. */
import { openSync, readSync } from "node:fs";

const buffer = Buffer.allocUnsafe(1024 * 1024);
for (const path of process.argv.slice(2)) {
  const hasher = new Bun.CryptoHasher("sha256");
  const descriptor = openSync(path, "r");
  for (let length = 1; length > 0; hasher.update(buffer.subarray(0, length)))
    length = readSync(descriptor, buffer);
  process.stdout.write(`${hasher.digest("hex")}  ${path}\n`);
}
