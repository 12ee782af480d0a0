import { statfsSync } from "node:fs";
import { BoughError } from "../../errors.ts";

/** What an image may hold at most, so that a bomb ends before it has filled the disk. */
export interface ImportLimits {
  /** Bytes of all its layers, uncompressed. */
  bytes: number;
  /** Files, directories and links of all its layers. */
  entries: number;
}

/** Several times as much as the largest public images have. */
export const defaultImportLimits: ImportLimits = { bytes: 512 * 1024 ** 3, entries: 20_000_000 };

/** Bytes of an image's manifest, index and configuration: what registries and skopeo take (containers/image, iolimits). */
export const maxJsonBytes = 4 * 1024 ** 2;
/** Layers of one image. Docker makes no more than 127. */
export const maxLayers = 1_000;
/** Entries of an archive: blobs, configurations, and what old formats have beside each layer. */
export const maxArchiveEntries = 50_000;

/** What an import has come to: bytes and entries of what it unpacks to, and bytes that are `written` beside that. */
export type Used = Partial<ImportLimits & { written: number }>;

/** What an import may write. */
export interface Budget {
  /** Throws where an image unpacks to more than any may hold, or with what is written already to more than the disk has room for. */
  check(used: Used): void;
}

/** What there is to be filled by an image. Plain data. */
export interface Room {
  image: string;
  /** A directory on the disk that it is unpacked to. */
  directory: string;
  limits: ImportLimits;
  freeBytes: number;
  freeEntries: number;
}

export function measureRoom(image: string, directory: string, limits: ImportLimits): Room {
  const { bavail, bsize, files, ffree } = statfsSync(directory);
  // Some file systems make inodes as they are needed, and say that they have none.
  const freeEntries = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  return { image, directory, limits, freeBytes: bavail * bsize, freeEntries };
}

/** Does what `Budget.check` does. */
export function checkRoom(room: Room, { bytes = 0, entries = 0, written = 0 }: Used): void {
  const { image, limits, freeBytes, freeEntries, directory } = room;
  if (bytes > limits.bytes) throw tooLarge(image, `more than ${formatSize(limits.bytes)}`);
  if (entries > limits.entries) throw tooLarge(image, `more than ${limits.entries} files`);
  if (bytes + written > freeBytes)
    throw noRoom(image, `the ${formatSize(freeBytes)} that are free`, directory);
  if (entries > freeEntries) throw noRoom(image, `the ${freeEntries} files that can be made`, directory);
}

export function createBudget(image: string, directory: string, limits: ImportLimits): Budget {
  const room = measureRoom(image, directory, limits);
  return { check: (used) => checkRoom(room, used) };
}

function tooLarge(image: string, what: string): BoughError {
  return new BoughError(`${image} unpacks to ${what}: it is not imported`);
}

function noRoom(image: string, what: string, directory: string): BoughError {
  // The client says how to make room, as for every import that finds none.
  return new BoughError(
    `no space left on the disk that holds ${directory}: ${image} unpacks to more than ${what}`,
  );
}

function formatSize(bytes: number): string {
  return bytes < 1e9 ? `${Math.floor(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
