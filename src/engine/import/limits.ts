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

/** What an import may write into its directory. */
export interface Budget {
  /**
   * Throws where an image unpacks to so much that it is more than any may hold, or together with what is `written` already (in
   * bytes) more than the disk has room for.
   */
  check(used: Partial<ImportLimits & { written: number }>): void;
}

/** `directory`: on the disk that it is unpacked to. */
export function createBudget(image: string, directory: string, limits: ImportLimits): Budget {
  const { bavail, bsize, files, ffree } = statfsSync(directory);
  const freeBytes = bavail * bsize;
  // Some file systems make inodes as they are needed, and say that they have none.
  const freeEntries = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  return {
    check({ bytes = 0, entries = 0, written = 0 }) {
      if (bytes > limits.bytes) throw tooLarge(image, `more than ${formatSize(limits.bytes)}`);
      if (entries > limits.entries) throw tooLarge(image, `more than ${limits.entries} files`);
      if (bytes + written > freeBytes)
        throw noRoom(image, `the ${formatSize(freeBytes)} that are free`, directory);
      if (entries > freeEntries) throw noRoom(image, `the ${freeEntries} files that can be made`, directory);
    },
  };
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
