/** Hashes a layer's archive and each file in it. */
import {
  type Compression,
  decompress,
  detectLayerCompression,
  peekBeginning,
} from "../../image/compression.ts";

import { readLayerTar, type TarEntry } from "../../image/tar-reader.ts";
import { tap } from "../../streams.ts";
import type { HashedFile } from "./shared-files.ts";

/** One of the largest files of a layer. */
export interface LargeFile extends HashedFile {
  path: string;
}

interface ReadLayer {
  /** A hash of the archive. */
  digest: string;
  files: Iterable<HashedFile>;
  bytes: number;
  /** The largest first. */
  largest: readonly LargeFile[];
}

/** The number of files of a layer whose paths are kept. */
const maxLargeFiles = 16;

export async function readLayer(content: AsyncIterable<Uint8Array>, name: string): Promise<ReadLayer> {
  const whole = new Bun.CryptoHasher("sha256");
  const hashed = createHashes();
  let bytes = 0;
  let largest: LargeFile[] = [];
  const plain = tap(await decompressLayer(content, name), (chunk) => whole.update(chunk));
  for await (const entry of readLayerTar(plain, name)) {
    // Empty files and hard links take no space of their own.
    if (entry.type !== "file" || entry.size === 0) continue;
    const path = Buffer.from(entry.name, "latin1")
      .toString()
      .replace(/^\.?\/+/, "");
    const file = { ...(await hashFile(entry)), size: entry.size };
    hashed.push(file);
    bytes += entry.size;
    largest.push({ ...file, path: `/${path}` });
    if (largest.length >= maxLargeFiles * 4) largest = largestOf(largest);
  }
  return { digest: whole.digest("hex"), files: hashed.all(), bytes, largest: largestOf(largest) };
}

function largestOf(files: readonly LargeFile[]): LargeFile[] {
  return files.toSorted((one, other) => other.size - one.size).slice(0, maxLargeFiles);
}

/** Hashes the path, size and content of a file, but not its owner, mode and times. */
async function hashFile(entry: TarEntry): Promise<Pick<HashedFile, "high" | "low">> {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(`${entry.name.replace(/^\.?\/+/, "")}\0${entry.size}\0`);
  let end = 0;
  for await (const { offset, bytes } of entry.pieces()) {
    if (offset !== end) hasher.update(`\0${offset}\0`);
    hasher.update(bytes);
    end = offset + bytes.length;
  }
  const digest = hasher.digest();
  return { high: digest.readUInt32LE(0), low: digest.readUInt32LE(4) };
}

async function decompressLayer(
  content: AsyncIterable<Uint8Array>,
  name: string,
): Promise<AsyncIterable<Uint8Array>> {
  const { beginning, bytes } = await peekBeginning(content);
  const compression: Compression = detectLayerCompression(beginning, name);
  return decompress(bytes, compression, name);
}

/** Stores the hashes and sizes of a layer's files, in 16 bytes each. */
function createHashes() {
  let size = 0;
  let hashes = new Uint32Array(1024);
  let sizes = new Float64Array(512);
  return {
    push(file: HashedFile): void {
      if (size === sizes.length) {
        const [before, sizesBefore] = [hashes, sizes];
        hashes = new Uint32Array(before.length * 2);
        sizes = new Float64Array(sizesBefore.length * 2);
        hashes.set(before);
        sizes.set(sizesBefore);
      }
      hashes[size * 2] = file.high;
      hashes[size * 2 + 1] = file.low;
      sizes[size] = file.size;
      size += 1;
    },
    *all(): Generator<HashedFile> {
      for (let at = 0; at < size; at += 1)
        yield { high: hashes[at * 2] ?? 0, low: hashes[at * 2 + 1] ?? 0, size: sizes[at] ?? 0 };
    },
  };
}
