import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type Clock, systemClock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { errorCode } from "../system-error.ts";
import { displayPath } from "./display-path.ts";
import type { FileEntry } from "./entry.ts";
import { fileStatOf } from "./entry-of.ts";
import { fileError, isMissing } from "./file-error.ts";
import { createPace, type Pace } from "./pace.ts";
import { type HashCache, isSameStat, isSettled } from "./stat-cache.ts";

export interface HashOptions {
  signal?: AbortSignal;
  cache?: HashCache;
  /** Tells which files are too young to be remembered. */
  clock?: Pick<Clock, "now">;
  /** How far it has come; called now and then. */
  onProgress?: (done: { files: number; bytes: number }) => void;
}

/**
 * The SHA-256 of each file's content in lower-case hex, by its absolute path.
 *
 * @throws BoughError naming a file that can't be read, or is no longer the one that the entry describes: what is
 *   returned is never the hash of one state of a file beside the size or mode of another
 */
export async function hashFiles(
  entries: Iterable<FileEntry>,
  options: HashOptions = {},
): Promise<ReadonlyMap<string, string>> {
  const { signal, cache, clock = systemClock } = options;
  const done = { files: 0, bytes: 0 };
  const pace = createPace(signal, () => options.onProgress?.({ ...done }));
  const buffer = Buffer.allocUnsafe(chunkBytes);
  const hashes = new Map<string, string>();
  for (const entry of entries) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { absolutePath, stat } = entry;
    if (hashes.has(absolutePath)) continue;
    const bytesBefore = done.bytes;
    let hash = cache?.get(absolutePath, stat);
    if (hash === undefined) {
      const readAt = clock.now();
      hash = entry.size < chunkBytes ? hashSmall(entry, buffer) : await hashLarge(entry, buffer, pace, done);
      if (cache !== undefined && isSettled(stat, readAt)) cache.set(absolutePath, stat, hash);
    }
    hashes.set(absolutePath, hash);
    done.files++;
    done.bytes = bytesBefore + entry.size;
  }
  return hashes;
}

const chunkBytes = 1024 * 1024;

/** In one go, without giving way. */
function hashSmall(entry: FileEntry, buffer: Buffer): string {
  const descriptor = openUnchanged(entry);
  try {
    // One byte more than there should be, to notice a file that has grown.
    const length = read(descriptor, buffer, entry.size + 1, entry);
    requireUnchanged(descriptor, entry, length);
    return Bun.CryptoHasher.hash("sha256", buffer.subarray(0, length), "hex");
  } finally {
    closeSync(descriptor);
  }
}

async function hashLarge(
  entry: FileEntry,
  buffer: Buffer,
  pace: Pace,
  done: { bytes: number },
): Promise<string> {
  const descriptor = openUnchanged(entry);
  try {
    const hasher = new Bun.CryptoHasher("sha256");
    let total = 0;
    for (;;) {
      const length = read(descriptor, buffer, buffer.length, entry);
      if (length === 0) break;
      hasher.update(buffer.subarray(0, length));
      total += length;
      done.bytes += length;
      // A file that grows as fast as it is read would never end.
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

/** Opens without following a link and without waiting: the name may stand for a link or a pipe by now. */
function openUnchanged(entry: FileEntry): number {
  let descriptor: number;
  try {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    descriptor = openSync(entry.absolutePath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
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

function requireUnchanged(descriptor: number, entry: FileEntry, bytesRead: number): void {
  const now = fileStatOf(fstatSync(descriptor, { bigint: true }));
  if (bytesRead !== entry.size || !isSameStat(now, entry.stat)) throw changed(entry, "changed");
}

function read(descriptor: number, buffer: Buffer, length: number, entry: FileEntry): number {
  try {
    return readSync(descriptor, buffer, 0, length, null);
  } catch (error) {
    throw fileError("read", entry.contextPath, error);
  }
}

function changed(entry: FileEntry, how: "changed" | "vanished", cause?: unknown): BoughError {
  return new BoughError(`${displayPath(entry.contextPath)} ${how} while the build read it`, {
    hint: "Build again once nothing writes to the build context. A log of this very command is kept elsewhere, or named in .dockerignore.",
    cause,
  });
}
