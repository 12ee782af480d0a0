import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compress.ts";
import { detectCompression } from "../../image/compression.ts";

/** Detects a layer's compression by its first bytes, not by manifest or file name. Throws if bough can't unpack it. */
export function detectLayerCompression(beginning: Uint8Array, name: string): Compression {
  const compression = detectCompression(beginning);
  if (compression !== "bzip2" && compression !== "xz") return compression;
  throw new BoughError(
    `${name} is compressed with ${compression}, which is not supported: expected gzip, zstd or no compression`,
  );
}
