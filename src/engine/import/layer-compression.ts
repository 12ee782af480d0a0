import { BoughError } from "../../errors.ts";
import { detectCompression } from "../../image/compression.ts";

/** Goes by the first bytes, whatever the manifest or the file's name says. Throws for what bough does not unpack. */
export function detectLayerCompression(beginning: Uint8Array, name: string): "none" | "gzip" | "zstd" {
  const compression = detectCompression(beginning);
  if (compression !== "bzip2" && compression !== "xz") return compression;
  throw new BoughError(`${name} is compressed with ${compression}: gzip, zstd and plain archives are read`);
}
