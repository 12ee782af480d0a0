/** Compresses files as layers, and hashes them before and after it: `compress-once.ts FILE...`. */
import { createCompressor } from "../../src/image/compression.ts";
import { writeLayerBlob } from "../../src/image/layer-header.ts";

using compressor = createCompressor("gzip");
for (const path of process.argv.slice(2)) {
  const { digest } = await writeLayerBlob(Bun.file(path).stream(), compressor, () => {});
  process.stdout.write(`${digest}  ${path}\n`);
}
