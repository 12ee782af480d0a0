/**
 * Compresses a block as a separate gzip member; concatenated members are one file (RFC 1952, section 2.2). libdeflate takes half
 * of zlib's time, and makes the same bytes on every processor.
 */
export function gzipBlock(block: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return Bun.gzipSync(block, { library: "libdeflate", level });
}

/** The output is as small as with zlib's default of 6. Higher levels take time and save little. */
const level = 2;
