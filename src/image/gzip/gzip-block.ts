/**
 * A block as a gzip member of its own; members one after the other are one file (RFC 1952, section 2.2). libdeflate takes half of
 * zlib's time, and makes the same bytes on every processor.
 */
export function gzipBlock(block: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return Bun.gzipSync(block, { library: "libdeflate", level });
}

/** Output is as small as zlib's default of 6 makes it; more takes time and saves little. */
const level = 2;
