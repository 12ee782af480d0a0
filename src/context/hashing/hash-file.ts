import { closeSync, constants, fstatSync, readSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { openForReading } from "../../open-for-reading.ts";
import type { Pace } from "../../pace.ts";
import { errorCode } from "../../system-error.ts";
import { displayPath } from "../file-system/display-path.ts";
import { fileError, isMissing } from "../file-system/file-error.ts";
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

/** Returns a function that hashes one file after the other, through one buffer. */
export function createFileHasher(pace: Pace, onContent?: ContentListener) {
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
      ? hashSmall(entry, bufferFor(entry.size + 1), onBytes, onContent)
      : hashLarge(entry, bufferFor(chunkBytes), pace, onBytes);
}

/** Opens a file for hashing by the caller. Throws as the hasher does. */
export function openToHash(entry: FileToHash) {
  const descriptor = openUnchanged(entry);
  return {
    descriptor,
    read: (buffer: Uint8Array, length: number, position: number) =>
      read(descriptor, buffer, { length, position }, entry),
    requireUnchanged: () => requireUnchanged(descriptor, entry, entry.size),
    changed: () => changed(entry, "changed"),
    close: () => closeSync(descriptor),
  };
}

/** Hashes the file at once, without yielding to other work. */
function hashSmall(
  entry: FileToHash,
  buffer: Buffer,
  onBytes: (bytes: number) => void,
  onContent?: ContentListener,
): string {
  const descriptor = openUnchanged(entry);
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
  entry: FileToHash,
  buffer: Buffer,
  pace: Pace,
  onBytes: (bytes: number) => void,
): Promise<string> {
  const descriptor = openUnchanged(entry);
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

/** Opens the file without following a link and without blocking: the name may be a link or a pipe by now. */
function openUnchanged(entry: FileToHash): number {
  let descriptor: number;
  try {
    descriptor = openForReading(entry.absolutePath, constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) throw changed(entry, "vanished", error);
    if (errorCode(error) === "ELOOP" || errorCode(error) === "ENXIO") throw changed(entry, "changed", error);
    throw fileError("read", entry.contextPath, error);
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
  if (bytesRead !== entry.size || !isSameStat(now, entry.stat)) throw changed(entry, "changed");
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

function changed(entry: FileToHash, how: "changed" | "vanished", cause?: unknown): BoughError {
  return new BoughError(`${displayPath(entry.contextPath)} ${how} while the build read it`, {
    hint: "Build again when nothing writes to the build context any more. If this command writes a log into the context, move the log or add it to .dockerignore.",
    cause,
  });
}
