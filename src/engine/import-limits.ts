import { statfsSync } from "node:fs";
import { BoughError } from "../errors.ts";
import { maxUnpackedBytes } from "../image/archive-limits.ts";

/** Limits for an image's contents, so that a decompression bomb is stopped before it fills the disk. */
export interface ImportLimits {
  /** Bytes of all its layers, uncompressed. */
  bytes: number;
  /** Files, directories and links of all its layers. */
  entries: number;
}

export const defaultImportLimits: ImportLimits = { bytes: maxUnpackedBytes, entries: 20_000_000 };

/** The maximum size of an image's manifest, index and configuration, as in registries and skopeo (containers/image, iolimits). */
export const maxImageJsonBytes = 4 * 1024 ** 2;
/** The maximum number of an image's layers. Docker makes no more than 127. */
export const maxLayers = 1_000;
/** The maximum number of an archive's entries: blobs, configurations, and the extra files that old formats have for each layer. */
export const maxArchiveEntries = 50_000;

/** The space that an import has used so far: bytes and entries unpacked, and other bytes `written`. */
type ImportUsage = Partial<ImportLimits & { written: number }>;

/** The space that an import may use. */
export interface ImportBudget {
  /** Throws if an image unpacks to more than the limits, or if that and the bytes written need more space than is free. */
  check(used: ImportUsage): void;
}

/** The space available for an image. Plain data. */
export interface Room {
  image: string;
  /** A directory on the disk to which it is unpacked. */
  directory: string;
  limits: ImportLimits;
  freeBytes: number;
  freeEntries: number;
}

export function measureRoom(image: string, directory: string, limits: ImportLimits): Room {
  const { bavail, bsize, files, ffree } = statfsSync(directory);
  // Some file systems make inodes on demand, and report that they have none.
  const freeEntries = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  return { image, directory, limits, freeBytes: bavail * bsize, freeEntries };
}

/** Does what `ImportBudget.check` does, for a given room. */
export function checkRoom(room: Room, { bytes = 0, entries = 0, written = 0 }: ImportUsage): void {
  const { image, limits, freeBytes, freeEntries, directory } = room;
  if (bytes > limits.bytes) throw tooLarge(image, `more than ${formatSize(limits.bytes)}`);
  if (entries > limits.entries) throw tooLarge(image, `more than ${limits.entries} files`);
  if (bytes + written > freeBytes)
    throw noRoom(image, `the ${formatSize(freeBytes)} of free space`, directory);
  if (entries > freeEntries)
    throw noRoom(image, `the ${freeEntries} files that the file system can still hold`, directory);
}

export function createBudget(image: string, directory: string, limits: ImportLimits): ImportBudget {
  const room = measureRoom(image, directory, limits);
  return { check: (used) => checkRoom(room, used) };
}

function tooLarge(image: string, what: string): BoughError {
  return new BoughError(`${image} is not imported: it unpacks to ${what}`);
}

/** Thrown for an image that does not fit on this machine's disk. The client adds how to free space. */
export class NoRoomError extends BoughError {}

function noRoom(image: string, what: string, directory: string): NoRoomError {
  return new NoRoomError(
    `no space left on the disk that holds ${directory}: ${image} unpacks to more than ${what}`,
  );
}

function formatSize(bytes: number): string {
  return bytes < 1e9 ? `${Math.floor(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
