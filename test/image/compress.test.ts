import { describe, expect, test } from "bun:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { type Compression, createCompressor } from "../../src/image/compression.ts";

/** Compressible content of several blocks. */
const content = Buffer.concat(
  Array.from({ length: 400_000 }, (_, index) => Buffer.from(`line ${index * 7919}\n`)),
);

async function packed(compression: Compression, chunkBytes: number, bytes = content): Promise<Buffer> {
  async function* chunks() {
    for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  }
  using compressor = createCompressor(compression);
  return Buffer.concat(await Array.fromAsync(compressor.compress(chunks())));
}

describe("compression in blocks", () => {
  test.each([
    ["gzip", (bytes: Buffer) => gunzipSync(bytes)],
    ["gzip", (bytes: Buffer) => Bun.spawnSync(["gzip", "-dc"], { stdin: bytes }).stdout],
    ["zstd", (bytes: Buffer) => Bun.spawnSync(["zstd", "-dc"], { stdin: bytes }).stdout],
    ["none", (bytes: Buffer) => bytes],
  ] as const)("%s is read by others", async (compression, unpack) => {
    const bytes = await packed(compression, 100_000);
    expect(unpack(bytes).equals(content)).toBe(true);
    if (compression !== "none") expect(bytes.byteLength).toBeLessThan(content.byteLength / 2);
  });

  test.each(["gzip", "zstd"] as const)(
    "%s gives the same bytes for any size of the chunks",
    async (compression) => {
      expect((await packed(compression, 777)).equals(await packed(compression, 3_000_000))).toBe(true);
    },
  );

  test("threads give the same bytes as compressing each block alone", async () => {
    const block = 1024 * 1024;
    const alone = [];
    for (let at = 0; at < content.byteLength; at += block)
      alone.push(await packed("gzip", block, content.subarray(at, at + block)));
    expect((await packed("gzip", 100_000)).equals(Buffer.concat(alone))).toBe(true);
  });

  test("content that does not shrink is stored, and what shrinks beside it is not", async () => {
    const blockBytes = 1024 * 1024;
    const random = Buffer.alloc(2 * blockBytes);
    for (let at = 0; at < random.byteLength; at += 65_536)
      crypto.getRandomValues(random.subarray(at, at + 65_536));
    const mixed = Buffer.concat([random, content.subarray(0, blockBytes)]);
    const bytes = await packed("gzip", 100_000, mixed);
    expect(gunzipSync(bytes).equals(mixed)).toBe(true);
    // Stored: found as it was.
    expect(bytes.includes(random.subarray(1000, 2000))).toBe(true);
    expect(bytes.byteLength).toBeLessThan(random.byteLength + blockBytes / 2);
  });

  test("a block is compressed if a quarter of it shrinks", async () => {
    const mixed = Buffer.concat([content.subarray(0, 256 * 1024), Buffer.alloc(768 * 1024)]);
    for (let at = 256 * 1024; at < mixed.byteLength; at += 65_536)
      crypto.getRandomValues(mixed.subarray(at, at + 65_536));
    const bytes = await packed("gzip", 100_000, mixed);
    expect(gunzipSync(bytes).equals(mixed)).toBe(true);
    expect(bytes.byteLength).toBeLessThan(900 * 1024);
  });

  test("empty content gives a valid archive of no bytes", async () => {
    expect(gunzipSync(await packed("gzip", 1, Buffer.alloc(0))).byteLength).toBe(0);
    expect(zstdDecompressSync(await packed("zstd", 1, Buffer.alloc(0))).byteLength).toBe(0);
  });
});
