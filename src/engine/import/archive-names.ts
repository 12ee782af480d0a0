import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { defaultImportLimits, maxArchiveEntries, maxJsonBytes } from "../import-limits.ts";
import { compressionOf, readWhole } from "./archive-files.ts";
import { asObjects, asTexts, parseJson } from "./image-files.ts";

/**
 * Returns the names of each image in an archive of `docker save`, as Docker has them (`RepoTags`). Writes nothing, and reads only
 * as far as the archive's list of images.
 */
export async function readArchiveNames(path: string, signal: AbortSignal): Promise<string[][]> {
  const compression = await compressionOf(path);
  let entries = 0;
  for await (const entry of readTar(
    withinLimit(decompress(readWhole(path), compression, path), path),
    path,
  )) {
    signal.throwIfAborted();
    if (++entries > maxArchiveEntries) break;
    if (posix.normalize(entry.name) !== "manifest.json" || entry.type !== "file") continue;
    const images = asObjects(parseJson(await contentOf(entry, path), path), path);
    return images.map(({ RepoTags }) => asTexts(RepoTags, path));
  }
  return [];
}

async function contentOf({ size, pieces }: TarEntry, path: string): Promise<Uint8Array> {
  if (size > maxJsonBytes) throw new BoughError(`the list of images in ${path} is too large: ${size} bytes`);
  const parts: Uint8Array[] = [];
  for await (const { bytes } of pieces()) parts.push(bytes.slice());
  return Buffer.concat(parts);
}

async function* withinLimit(content: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.byteLength;
    if (bytes > defaultImportLimits.bytes) throw new BoughError(`${path} is too large for an image`);
    yield chunk;
  }
}
