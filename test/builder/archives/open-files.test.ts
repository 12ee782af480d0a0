/** ADD closes all descriptors for an archive that was read, left or refused. */
import { describe, expect, test } from "bun:test";
import { createReadStream, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { createHashedStream, openArchive } from "../../../src/builder/archives/open-archive.ts";
import { createDecompress } from "../../../src/cli/contexts/programs.ts";
import { readTar } from "../../../src/image/tar-reader.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { leftOpen } from "../../support/descriptors.ts";
import { tarOf } from "../../support/tar-bytes.ts";

const content = new Uint8Array(2_000_000);
for (let at = 0; at < content.length; at += 65_536) crypto.getRandomValues(content.subarray(at, at + 65_536));
const plain = tarOf([
  { name: "one", content },
  { name: "two", content },
]);

const packings: [string, Uint8Array][] = [
  ["an uncompressed archive", plain],
  ["a gzip archive", gzipSync(plain, { level: 1 })],
  ["a zstd archive", zstdCompressSync(plain)],
  ["an xz archive", Bun.spawnSync(["xz", "-1c"], { stdin: plain }).stdout],
];
const readings: [string, (bytes: Uint8Array) => Uint8Array, number][] = [
  ["read to its end leaves no descriptors", (bytes) => bytes, 2],
  ["left after one entry leaves no descriptors", (bytes) => bytes, 1],
  ["cut off leaves no descriptors", (bytes) => bytes.subarray(0, bytes.length / 2), 2],
  ["followed by other bytes leaves no descriptors", (bytes) => Buffer.concat([bytes, content]), 2],
];

describe.each(packings)("%s", (_, bytes) => {
  test.each(readings)("%s", async (_, change, entries) => {
    const path = join(temporaryDirectory(), "a.tar");
    writeFileSync(path, change(bytes));
    const left = await leftOpen(async () => {
      await using raw = createHashedStream(createReadStream(path));
      const build = { decompress: createDecompress(process.env.PATH) };
      let read = 0;
      try {
        const archive = await openArchive(raw, path, build);
        for await (const _ of readTar(archive ?? raw, path)) if (++read === entries) break;
      } catch {
        // A damaged archive throws.
      }
    });
    expect(left).toEqual([]);
  });
});
