import { BoughError } from "../../errors.ts";
import { type Compression, detectCompression } from "../../image/compression.ts";

/** Detects a layer's compression by its first bytes, not by manifest or file name. Throws if bough can't unpack it. */
export function detectLayerCompression(beginning: Uint8Array, name: string): Compression {
  const compression = detectCompression(beginning);
  if (compression !== "bzip2" && compression !== "xz") return compression;
  throw new BoughError(
    `${name} is compressed with ${compression}, which is not supported: expected gzip, zstd or no compression`,
  );
}

/** Returns the first bytes of a stream, by which its compression is detected, and the whole stream. */
export async function peek(
  content: AsyncIterable<Uint8Array>,
): Promise<{ bytes: AsyncIterable<Uint8Array>; beginning: Uint8Array }> {
  const chunks = content[Symbol.asyncIterator]();
  const { value: first = new Uint8Array() } = await chunks.next();
  const bytes = (async function* () {
    yield first;
    yield* { [Symbol.asyncIterator]: () => chunks };
  })();
  return { bytes, beginning: first.subarray(0, 8) };
}
