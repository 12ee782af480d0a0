import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "../../system-error.ts";

/** How stored bytes are opened: a link or a pipe that somebody has put in their place is neither followed nor waited for. */
export const readingStored = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The disk has lost the bytes, or something else stands in their place. */
export function isUnreadable(error: unknown): boolean {
  return ["EAGAIN", "EIO", "EISDIR", "ELOOP", "ENOENT", "ENOTDIR", "ENXIO"].includes(errorCode(error) ?? "");
}

const pieceBytes = 1024 * 1024;

/**
 * The SHA-256 of a file in lower-case hex, read in pieces: yields the bytes of each, so that the caller can give way.
 * Returns `undefined` where there is no such file, or nothing can be read of it.
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

/** Does what `hashInPieces` does, in one go. */
export function hashStored(path: string): string | undefined {
  const pieces = hashInPieces(path);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}
