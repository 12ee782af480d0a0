import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { hexOf, isDigest } from "../../image/digest.ts";
import type { LayerBlob } from "../../image/layer-blob.ts";
import { errorCode } from "../../system-error.ts";
import type { Layout } from "../layout.ts";

/** A layer as an image was imported with it, and where the file is. */
export interface ImportedBlob extends LayerBlob {
  path: string;
}

const listName = "layers.json";

/** Gathers the files that an imported image's layers were, before they become part of the engine. All are on its disk. */
export function gatherBlobs(directory: string, blobs: readonly ImportedBlob[]): void {
  mkdirSync(directory, { mode: 0o700 });
  const list = blobs.map(({ path, ...blob }) => {
    linkOnce(path, join(directory, hexOf(blob.digest)));
    return blob;
  });
  writeFileSync(join(directory, listName), JSON.stringify(list));
}

/** Keeps gathered files with the layer that their content has become. Without them it leaves the engine as a layer of bough's own. */
export function keepBlobs(layout: Layout, layer: number, directory: string): void {
  if (!existsSync(directory)) return;
  const place = blobsDirectory(layout, layer);
  // What is there is of the same content before it was damaged, or of a process that was killed before it recorded the layer.
  if (existsSync(place)) renameSync(place, join(layout.scratch, crypto.randomUUID()));
  renameSync(directory, place);
}

/** Gives every file that is kept a second name in `directory`, its digest's digits: what is there has not to be fetched again. */
export function linkKnownBlobs(layout: Layout, directory: string): void {
  for (const layer of readdirSync(layout.blobs)) {
    for (const blob of findBlobsIn(join(layout.blobs, layer)) ?? []) {
      try {
        linkSync(blob.path, join(directory, hexOf(blob.digest)));
      } catch (error) {
        // Several layers may have it; it may have been pruned just now; a file system has so many links to one file, or none.
        if (!["EEXIST", "ENOENT", "EMLINK", "EPERM"].includes(errorCode(error) ?? "")) throw error;
      }
    }
  }
}

/** The lowest first; `undefined` where they were not kept, or are not all there. */
export function findBlobs(layout: Layout, layer: number): ImportedBlob[] | undefined {
  return findBlobsIn(blobsDirectory(layout, layer));
}

function findBlobsIn(directory: string): ImportedBlob[] | undefined {
  const blobs = readList(directory)?.map((blob) => ({ ...blob, path: join(directory, hexOf(blob.digest)) }));
  return blobs?.every(({ path, size }) => isFile(path, size)) ? blobs : undefined;
}

export function blobsDirectory(layout: Layout, layer: number): string {
  return join(layout.blobs, layer.toString(36));
}

function readList(directory: string): LayerBlob[] | undefined {
  try {
    const list: unknown = JSON.parse(readFileSync(join(directory, listName), "utf8"));
    return Array.isArray(list) && list.every(isBlob) ? list : undefined;
  } catch (error) {
    // No list, or a damaged one.
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR", "EIO"].includes(errorCode(error) ?? ""))
      return undefined;
    throw error;
  }
}

function isBlob(value: unknown): value is LayerBlob {
  if (typeof value !== "object" || value === null) return false;
  const { mediaType, digest, size, diffId } = value as Record<string, unknown>;
  return typeof mediaType === "string" && typeof size === "number" && isDigest(digest) && isDigest(diffId);
}

function isFile(path: string, size: number): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size === size;
}

/** An image may have one layer several times. */
function linkOnce(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}
