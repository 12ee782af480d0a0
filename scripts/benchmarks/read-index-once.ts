/** Reads an index of 10,000 layers once, as a build with a scope does, and prints the milliseconds. */
import { decodeIndex, encodeScopeIndex } from "../../src/builder/scopes/index-file.ts";
import { emptyIndex } from "../../src/builder/scopes/scope-index.ts";

const index = emptyIndex();
const now = Date.now();
const digest = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
for (let number = 0; number < 10_000; number++) {
  const [image, operation] = [crypto.randomUUID(), crypto.randomUUID()];
  const title = `RUN apt-get update && apt-get install -y --no-install-recommends package-${number}`;
  const made = { madeAt: now, usedAt: now, bytes: number, seconds: number / 7, by: "0.1.0" };
  index.layers.set(digest(title), { image, operation, title, ...made });
}
const header = { scope: "main", by: "0.1.0", at: now, merged: [] };
const file = encodeScopeIndex(index, header).index;
const started = performance.now();
const read = decodeIndex(file, "main").index.layers.size;
const milliseconds = performance.now() - started;
if (read !== index.layers.size) throw new Error(`${read} entries were read`);
process.stdout.write(String(milliseconds));
