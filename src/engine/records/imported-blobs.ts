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
import { basename, join } from "node:path";
import { hexOf, isDigest } from "../../image/digest.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { layerMediaType } from "../../image/oci-layout.ts";
import { errorCode } from "../../system-error.ts";
import { type Layout, moveToScratch } from "../layout.ts";
import { diskUsage } from "../system/disk.ts";
import { layerNames } from "./layers.ts";
import type { Records } from "./records.ts";
import { lostLayers } from "./unsynced-layers.ts";

/** A layer's blob as it was imported. */
interface KeptBlob extends LayerBlob {
  /** The repository that it came from. A push to the same registry can mount it from there. */
  source?: string;
  /** Set if not the blob is kept, but its split with this size; see `tar-split.ts`. */
  splitBytes?: number;
}

/** A kept blob, with the path of the blob or of its split. */
export interface ImportedBlob extends KeptBlob {
  path: string;
}

const listName = "layers.json";

/** Collects the blobs of an imported image's layers in a new directory, by hard links, before `keepBlobs`. */
export function gatherBlobs(directory: string, blobs: readonly ImportedBlob[]): void {
  mkdirSync(directory, { mode: 0o700 });
  const list = blobs.map(({ path, ...blob }) => {
    linkOnce(path, join(directory, fileName(blob)));
    return blob;
  });
  writeFileSync(join(directory, listName), JSON.stringify(list));
}

/** Moves collected blobs to the layer with their content. Without blobs, the layer is exported as one that bough itself made. */
export function keepBlobs(layout: Layout, layer: number, directory: string): void {
  if (!existsSync(directory)) return;
  const place = blobsDirectory(layout, layer);
  // An existing directory is from before the layer was damaged, or from a process killed before it recorded the layer.
  if (existsSync(place)) moveToScratch(layout, place);
  renameSync(directory, place);
}

/**
 * Hard-links every kept blob into `directory`, named by its digest's hex digits, so that it is not fetched again. Leaves out those
 * of lost layers, since the memory may still have their bytes when the disk does not, and splits, which only local images have.
 */
export function linkKnownBlobs(records: Records, directory: string): void {
  const { database, layout } = records;
  const lost = new Set(lostLayers(records).map((id) => blobsDirectory(layout, id)));
  const recorded = new Set(layerNames(database));
  for (const layer of readdirSync(layout.blobs)) {
    const place = join(layout.blobs, layer);
    if (lost.has(place) || !recorded.has(layer)) continue;
    for (const blob of findBlobsIn(place) ?? []) {
      if (blob.splitBytes !== undefined) continue;
      try {
        linkSync(blob.path, join(directory, hexOf(blob.digest)));
      } catch (error) {
        // Several layers may have the blob, it may just have been pruned, or the file system allows no more links.
        if (!["EEXIST", "ENOENT", "EMLINK", "EPERM"].includes(errorCode(error) ?? "")) throw error;
      }
    }
  }
}

/** Returns a layer's blobs, the lowest first; `undefined` if they were not kept or some are missing. */
export function findBlobs(layout: Layout, layer: number): ImportedBlob[] | undefined {
  return findBlobsIn(blobsDirectory(layout, layer));
}

/** True if a layer's blobs are kept, and none of them whole that a split could stand for, as earlier versions kept those of archives. */
export function hasCompactBlobs(layout: Layout, layer: number): boolean {
  const isCompact = ({ mediaType, source, splitBytes }: KeptBlob) =>
    mediaType !== layerMediaType("none") || source !== undefined || splitBytes !== undefined;
  return findBlobs(layout, layer)?.every(isCompact) === true;
}

function findBlobsIn(directory: string): ImportedBlob[] | undefined {
  const blobs = readList(directory)?.map((blob) => ({ ...blob, path: join(directory, fileName(blob)) }));
  return blobs?.every(({ path, size, splitBytes }) => isFile(path, splitBytes ?? size)) ? blobs : undefined;
}

function fileName({ digest, splitBytes }: KeptBlob): string {
  return splitBytes === undefined ? hexOf(digest) : `${hexOf(digest)}.tar-split`;
}

/** Creates a function that returns the bytes of a layer's kept blobs. Few layers have some. */
export function createBlobSizes(layout: Layout): (layer: number) => number {
  const kept = new Set(readdirSync(layout.blobs));
  return (layer) => {
    const directory = blobsDirectory(layout, layer);
    return kept.has(basename(directory)) ? diskUsage(directory) : 0;
  };
}

export function blobsDirectory(layout: Layout, layer: number): string {
  return join(layout.blobs, layer.toString(36));
}

function readList(directory: string): KeptBlob[] | undefined {
  try {
    const list: unknown = JSON.parse(readFileSync(join(directory, listName), "utf8"));
    return Array.isArray(list) && list.every(isBlob) ? list : undefined;
  } catch (error) {
    // There is no list, or it is damaged.
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR", "EIO"].includes(errorCode(error) ?? ""))
      return undefined;
    throw error;
  }
}

function isBlob(value: unknown): value is KeptBlob {
  if (typeof value !== "object" || value === null) return false;
  const { mediaType, digest, size, diffId, source = "", splitBytes = 0 } = value as Record<string, unknown>;
  if (typeof source !== "string" || typeof splitBytes !== "number") return false;
  return typeof mediaType === "string" && typeof size === "number" && isDigest(digest) && isDigest(diffId);
}

function isFile(path: string, size: number): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size === size;
}

/** Makes a hard link, unless it exists: an image may have the same layer several times. */
function linkOnce(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}
