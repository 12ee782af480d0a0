import { closeSync, fstatSync, readSync } from "node:fs";
import { openWithoutLinks } from "../../open-without-links.ts";
import type { Pace } from "../../pace.ts";
import { changedError, fileError, readError } from "../file-system/file-error.ts";
import type { FileEntry, FileStat } from "../sources/entry.ts";
import { fileStatOf } from "../sources/entry-of.ts";

/** The parts of a file's entry that are needed to read exactly this state of the file. */
export type FileToHash = Pick<FileEntry, "absolutePath" | "contextPath" | "size" | "stat">;

const chunkBytes = 1024 * 1024;
/** The buffer's first size. A smaller one would have to grow for nearly each file. */
const minBufferBytes = 64 * 1024;

/** Receives the contents of a small file that was hashed. The buffer is overwritten after the call. */
export type ContentListener = (sha256: string, bytes: Uint8Array, file: FileToHash) => void;

/** Opens a file for reading. Throws ELOOP if there is a link in its path. */
type OpenFile = (path: string) => number;

/** Returns a function that hashes one file after the other, through one buffer. */
export function createFileHasher(pace: Pace, open: OpenFile, onContent?: ContentListener) {
  let buffer = Buffer.alloc(0);
  const bufferFor = (bytes: number) => {
    if (buffer.length < bytes)
      buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(bytes, minBufferBytes)));
    return buffer;
  };
  /**
   * Returns the SHA-256 of a file's content in lower-case hex. Yields to other work while it reads a large file.
   *
   * @param onBytes called with the number of bytes read since the last call
   * @throws BoughError if the file can't be read, or no longer matches the entry
   */
  return (entry: FileToHash, onBytes: (bytes: number) => void): string | Promise<string> =>
    entry.size < chunkBytes
      ? hashSmall(openUnchanged(entry, open), entry, bufferFor(entry.size + 1), onBytes, onContent)
      : hashLarge(openUnchanged(entry, open), entry, bufferFor(chunkBytes), pace, onBytes);
}

/** Opens a file for hashing by the caller. Throws as the hasher does. */
export function openToHash(entry: FileToHash) {
  const descriptor = openUnchanged(entry, openWithoutLinks);
  return {
    descriptor,
    read: (buffer: Uint8Array, length: number, position: number) =>
      read(descriptor, buffer, { length, position }, entry),
    requireUnchanged: () => requireUnchanged(descriptor, entry, entry.size),
    changed: () => changedError(entry.contextPath, "changed"),
    close: () => closeSync(descriptor),
  };
}

/** Hashes the file at once, without yielding to other work. */
function hashSmall(
  descriptor: number,
  entry: FileToHash,
  buffer: Buffer,
  onBytes: (bytes: number) => void,
  onContent?: ContentListener,
): string {
  try {
    // One byte more than expected, to detect a file that has grown.
    const length = read(descriptor, buffer, { length: entry.size + 1 }, entry);
    requireUnchanged(descriptor, entry, length);
    onBytes(length);
    const bytes = buffer.subarray(0, length);
    const sha256 = Bun.CryptoHasher.hash("sha256", bytes, "hex");
    onContent?.(sha256, bytes, entry);
    return sha256;
  } finally {
    closeSync(descriptor);
  }
}

async function hashLarge(
  descriptor: number,
  entry: FileToHash,
  buffer: Buffer,
  pace: Pace,
  onBytes: (bytes: number) => void,
): Promise<string> {
  try {
    const hasher = new Bun.CryptoHasher("sha256");
    let total = 0;
    for (;;) {
      const length = read(descriptor, buffer, { length: buffer.length }, entry);
      if (length === 0) break;
      hasher.update(buffer.subarray(0, length));
      total += length;
      onBytes(length);
      // Otherwise a file that grows as fast as it is read would never end.
      if (total > entry.size) break;
      const pause = pace.step();
      if (pause !== undefined) await pause;
    }
    requireUnchanged(descriptor, entry, total);
    return hasher.digest("hex");
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a file that is as its entry says: its name, or a directory on the way, may be a link or a pipe by now. */
function openUnchanged(entry: FileToHash, open: OpenFile): number {
  let descriptor: number;
  try {
    descriptor = open(entry.absolutePath);
  } catch (error) {
    throw readError("read", entry.contextPath, error);
  }
  try {
    requireUnchanged(descriptor, entry, entry.size);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function requireUnchanged(descriptor: number, entry: FileToHash, bytesRead: number): void {
  const now = fileStatOf(fstatSync(descriptor));
  if (bytesRead !== entry.size || !isSameStat(now, entry.stat))
    throw changedError(entry.contextPath, "changed");
}

function read(
  descriptor: number,
  buffer: Uint8Array,
  { length, position = null }: { length: number; position?: number | null },
  entry: FileToHash,
): number {
  try {
    return readSync(descriptor, buffer, 0, length, position);
  } catch (error) {
    throw fileError("read", entry.contextPath, error);
  }
}

/** Remembers the hash of a file's content by the file's `stat`. */
export interface HashCache {
  /** Returns the hash that was set for exactly this path (absolute) and this state. */
  get(path: string, stat: FileStat): string | undefined;
  /** Called for settled files only, see `isSettled`. */
  set(path: string, stat: FileStat, sha256: string): void;
}

/** Milliseconds since the epoch. */
type ChangeTimes = Pick<FileStat, "mtimeMs" | "ctimeMs">;

/**
 * Returns true if any later change of a file must show in its `stat`. A change within the same tick of the file system's clock as
 * the last one does not show: such a file is "racy" (git's word for it), and its hash must not be remembered. The change time
 * (ctime) decides, since no program can set it back.
 *
 * @param readAt when reading began, in milliseconds since the epoch
 */
export function isSettled(stat: ChangeTimes, readAt: number): boolean {
  const age = Math.floor(readAt) - stat.ctimeMs;
  return age > (hasWholeSeconds(stat) ? coarseTick : fineTick);
}

export function isSameStat(one: FileStat, other: FileStat): boolean {
  return (
    one.inode === other.inode &&
    one.mtimeMs === other.mtimeMs &&
    one.ctimeMs === other.ctimeMs &&
    one.size === other.size &&
    one.device === other.device
  );
}

/** Milliseconds. Linux stamps files with the time of its last timer tick, at most 10 ms ago. */
const fineTick = 100;

/** FAT counts in steps of two seconds, older network file systems in seconds. */
const coarseTick = 3000;

function hasWholeSeconds({ mtimeMs, ctimeMs }: ChangeTimes): boolean {
  return ctimeMs % 1000 === 0 && mtimeMs % 1000 === 0;
}
