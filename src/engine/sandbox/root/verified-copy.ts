import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isUnreadable, readingStored } from "../../records/stored-content.ts";

/** Bytes that were stored under their SHA-256, and what the copy of them is to be. */
export interface StoredContent {
  source: string;
  sha256: string;
  size: number;
  uid: number;
  gid: number;
  /** Permission bits with setuid, setgid and sticky. */
  mode: number;
  /** When it was modified, in seconds since the epoch; `undefined`: now. */
  mtime: number | undefined;
}

/** Below it a copy is over before a task could be handed to another thread for its bytes alone. */
export const smallBytes = 256 * 1024;
const chunkBytes = 1024 * 1024;

/** Copies stored files one after the other, through the same buffers. */
export function createVerifiedCopier() {
  const small = Buffer.allocUnsafe(smallBytes + 1);
  let large: [Buffer, Buffer] | undefined;
  /**
   * Writes the content to `destination`, where nothing may be yet. The bytes that are hashed are the bytes that are written.
   * False where they are not the content that was stored, or can't be read: then `destination` is of no use.
   */
  return (content: StoredContent, destination: string): boolean | Promise<boolean> => {
    if (content.size < smallBytes) return copySmall(content, destination, small);
    large ??= [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)];
    return copyLarge(content, destination, large);
  };
}

/** Copies in one go; see `createVerifiedCopier`. `buffer` has room for one byte more than the content. Throws EEXIST where something is at `destination`. */
export function copySmall(content: StoredContent, destination: string, buffer: Buffer): boolean {
  const length = readWhole(content, buffer);
  if (length !== content.size) return false;
  const bytes = buffer.subarray(0, length);
  if (Bun.CryptoHasher.hash("sha256", bytes, "hex") !== content.sha256) return false;
  const target = openSync(destination, creating, 0o600);
  try {
    for (let written = 0; written < length; ) written += writeSync(target, bytes, written);
    fchownSync(target, content.uid, content.gid);
    // The owner comes first, since its change takes setuid and setgid away.
    fchmodSync(target, content.mode);
    if (content.mtime !== undefined) futimesSync(target, content.mtime, content.mtime);
  } finally {
    closeSync(target);
  }
  return true;
}

/** Returns how many bytes there are: one more than there should be of a file that has grown; `undefined` where none can be read. */
function readWhole({ source, size }: StoredContent, buffer: Buffer): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(source, readingStored);
    // A pipe that is empty gives nothing, a directory can't be read, and of anything else the hash is another one.
    return readSync(descriptor, buffer, 0, size + 1, null);
  } catch (error) {
    return undefinedIfUnreadable(error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** While one chunk is hashed on this thread, it is written and the next one read on others. */
async function copyLarge(
  content: StoredContent,
  destination: string,
  [first, second]: [Buffer, Buffer],
): Promise<boolean> {
  const source = await open(content.source, readingStored).catch(undefinedIfUnreadable);
  if (source === undefined) return false;
  let target: FileHandle | undefined;
  try {
    if (!(await source.stat()).isFile()) return false;
    target = await open(destination, creating, 0o600);
    const hasher = new Bun.CryptoHasher("sha256");
    let total = 0;
    let [chunk, other] = [first, second];
    let length = await readChunk(source, chunk);
    while (length !== undefined && length > 0 && total + length <= content.size) {
      total += length;
      const bytes = chunk.subarray(0, length);
      const work = [readChunk(source, other), writeAll(target, bytes)] as const;
      hasher.update(bytes);
      [length] = await Promise.all(work);
      [chunk, other] = [other, chunk];
    }
    if (length !== 0 || total !== content.size || hasher.digest("hex") !== content.sha256) return false;
    await target.chown(content.uid, content.gid);
    await target.chmod(content.mode);
    if (content.mtime !== undefined) await target.utimes(content.mtime, content.mtime);
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

const creating = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function undefinedIfUnreadable(error: unknown): undefined {
  if (!isUnreadable(error)) throw error;
}
