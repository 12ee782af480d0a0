import { closeSync, fstatSync, readSync } from "node:fs";
import { openWithoutLinks } from "../../open-without-links.ts";
import type { Pace } from "../../pace.ts";
import { changedError, fileError, readError } from "../file-system/file-error.ts";
import type { FileEntry } from "../sources/entry.ts";
import { fileStatOf } from "../sources/entry-of.ts";
import { isSameStat } from "./stat-cache.ts";

/** The parts of a file's entry that are needed to read exactly this state of the file. */
export type FileToHash = Pick<FileEntry, "absolutePath" | "contextPath" | "size" | "stat">;

const chunkBytes = 1024 * 1024;
/** A smaller buffer would have to grow with every other file. */
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

/** Opens the file itself, in the context: its name, or a directory on the way, may be a link or a pipe by now. */
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
