import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "../../system-error.ts";

/** Flags for opening stored files: they neither follow a link nor wait for a pipe in a file's place. */
export const readingStored = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** True if the disk has lost the bytes, or something else is in their place. */
export function isUnreadable(error: unknown): boolean {
  return ["EAGAIN", "EIO", "EISDIR", "ELOOP", "ENOENT", "ENOTDIR", "ENXIO"].includes(errorCode(error) ?? "");
}

const pieceBytes = 1024 * 1024;

/**
 * Returns the SHA-256 of a file in lower-case hex, or `undefined` if it is missing or unreadable. Yields the size of each piece
 * that it reads, so that the caller can give way to other work.
 */
export function* hashInPieces(path: string | Buffer): Generator<number, string | undefined> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, readingStored);
    if (!fstatSync(descriptor).isFile()) return undefined;
    const buffer = Buffer.allocUnsafe(pieceBytes);
    const hasher = new Bun.CryptoHasher("sha256");
    for (let length = readSync(descriptor, buffer); length > 0; length = readSync(descriptor, buffer)) {
      hasher.update(buffer.subarray(0, length));
      yield length;
    }
    return hasher.digest("hex");
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Like `hashInPieces`, but in one call. */
export function hashStored(path: string): string | undefined {
  const pieces = hashInPieces(path);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}
