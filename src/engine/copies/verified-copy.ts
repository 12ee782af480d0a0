import { closeSync, constants, futimesSync, lstatSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { copyFile, type FileHandle, open } from "node:fs/promises";
import { fileTime } from "../../clock.ts";
import { openForReading } from "../../open-for-reading.ts";
import { errorCode } from "../../system-error.ts";
import { isUnreadable, readingStored } from "../records/stored-content.ts";
import { creating, firstMode, setOwnerAndMode } from "../system/owner-and-mode.ts";
import { type Path, pathBytes } from "../system/path.ts";
import type { Problems } from "./batch-sharing.ts";
import type { PlacedFile } from "./file-spec.ts";

/** A small file, and its target path on this machine, which usually does not exist yet. */
export interface CopyJob {
  file: PlacedFile;
  target: string;
}

/** The reason why a file could not be copied: its bytes have changed since they were hashed, or its target is a directory. */
export type CopyProblem = "changed" | "directory";

/** A smaller copy takes less time than handing its bytes to another thread. */
export const smallBytes = 256 * 1024;
const chunkBytes = 1024 * 1024;

/**
 * Creates a function that copies files smaller than `smallBytes` through one buffer. It replaces what is at a target, unless that
 * is a directory. It writes exactly the bytes that it has hashed. After a problem the target is unusable.
 */
export function createBatchCopier() {
  const buffer = Buffer.allocUnsafe(smallBytes + 1);
  return (jobs: readonly CopyJob[]): Problems<CopyProblem> =>
    jobs.flatMap((job, index) => {
      const problem = copyOrReplace(job, buffer);
      return problem === undefined ? [] : [[index, problem] as const];
    });
}

function copyOrReplace({ file, target }: CopyJob, buffer: Buffer): CopyProblem | undefined {
  try {
    return copySmall(file, target, buffer) ? undefined : "changed";
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    // This is rare: an earlier copy for the same image has made the target.
    if (!clearFile(target)) return "directory";
    return copySmall(file, target, buffer) ? undefined : "changed";
  }
}

/** Like `createBatchCopier`, for one larger file at a time. `onPart` is called with the size of each part that is written. */
export function createLargeCopier(onPart: (bytes: number) => void) {
  let buffers: [Buffer, Buffer] | undefined;
  return async (file: PlacedFile, target: string): Promise<CopyProblem | undefined> => {
    if (!clearFile(target)) return "directory";
    buffers ??= [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)];
    return (await copyLarge(file, target, buffers, onPart)) ? undefined : "changed";
  };
}

/** Removes a file at `target`. Returns false for a directory, which stays. */
function clearFile(target: string): boolean {
  const stats = lstatSync(target, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return false;
  if (stats !== undefined) rmSync(target);
  return true;
}

/** Copies through `buffer`, which is at least one byte larger than the content. Throws EEXIST if `target` exists. */
function copySmall(file: PlacedFile, target: string, buffer: Buffer): boolean {
  const length = readWhole(file, buffer);
  if (length !== file.size) return false;
  const bytes = buffer.subarray(0, length);
  if (Bun.CryptoHasher.hash("sha256", bytes, "hex") !== file.sha256) return false;
  const descriptor = openSync(target, creating, firstMode(file.mode));
  try {
    for (let written = 0; written < length; ) written += writeSync(descriptor, bytes, written);
    setOwnerAndMode(descriptor, file);
    if (file.mtime !== undefined) futimesSync(descriptor, fileTime(file.mtime), fileTime(file.mtime));
  } finally {
    closeSync(descriptor);
  }
  return true;
}

/** Returns the number of bytes read: one more than `size` for a file that has grown, `undefined` if it can't be read. */
function readWhole({ path, size }: PlacedFile, buffer: Buffer): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openForReading(path, readingStored);
    // An empty pipe has no bytes, a directory can't be read, and any other file has a different hash.
    return readSync(descriptor, buffer, 0, size + 1, null);
  } catch (error) {
    return undefinedIfUnreadable(error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Hashes a chunk on this thread while other threads write it and read the next one. */
async function copyLarge(
  file: PlacedFile,
  path: string,
  [first, second]: [Buffer, Buffer],
  onPart: (bytes: number) => void,
): Promise<boolean> {
  const source = await open(file.path, readingStored).catch(undefinedIfUnreadable);
  if (source === undefined) return false;
  let target: FileHandle | undefined;
  try {
    if (!(await source.stat()).isFile()) return false;
    target = await open(path, creating, 0o600);
    const hasher = new Bun.CryptoHasher("sha256");
    let total = 0;
    let [chunk, other] = [first, second];
    let length = await readChunk(source, chunk);
    while (length !== undefined && length > 0 && total + length <= file.size) {
      total += length;
      const bytes = chunk.subarray(0, length);
      const work = [readChunk(source, other), writeAll(target, bytes)] as const;
      hasher.update(bytes);
      [length] = await Promise.all(work);
      onPart(bytes.length);
      [chunk, other] = [other, chunk];
    }
    if (length !== 0 || total !== file.size || hasher.digest("hex") !== file.sha256) return false;
    await target.chown(file.uid, file.gid);
    await target.chmod(file.mode);
    if (file.mtime !== undefined) await target.utimes(fileTime(file.mtime), fileTime(file.mtime));
    return true;
  } finally {
    await source.close();
    await target?.close();
  }
}

function readChunk(source: FileHandle, buffer: Buffer): Promise<number | undefined> {
  return source
    .read(buffer, 0, buffer.length, null)
    .then(({ bytesRead }) => bytesRead, undefinedIfUnreadable);
}

async function writeAll(target: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; )
    written += (await target.write(bytes, written)).bytesWritten;
}

function undefinedIfUnreadable(error: unknown): undefined {
  if (!isUnreadable(error)) throw error;
}

/** A smaller copy takes less time than handing it to another thread. */
const maxBufferedBytes = 256 * 1024;

const buffer = Buffer.allocUnsafe(maxBufferedBytes);

/** Copies bytes to a new file. A large one shares its blocks with the original if the file system can do that. */
export function copyContent(from: Path, to: Path, size: number): Promise<void> | undefined {
  if (size > maxBufferedBytes)
    return copyFile(pathBytes(from), pathBytes(to), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  const target = openSync(to, creating, 0o600);
  if (size === 0) {
    closeSync(target);
    return undefined;
  }
  let source: number | undefined;
  try {
    source = openForReading(from, constants.O_NOFOLLOW);
    for (;;) {
      const length = readSync(source, buffer, 0, maxBufferedBytes, null);
      if (length === 0) return undefined;
      for (let written = 0; written < length; )
        written += writeSync(target, buffer, written, length - written);
    }
  } finally {
    if (source !== undefined) closeSync(source);
    closeSync(target);
  }
}
