import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { takeStepsNow } from "../../pace.ts";
import { errorCode } from "../../system-error.ts";

/** Flags for opening stored files: they neither follow a link nor wait for a pipe in a file's place. */
export const readingStored = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Returns true if the disk has lost a file's bytes, or something else is in its place. */
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
  return takeStepsNow(hashInPieces(path));
}

/** The maximum number of bytes read at once. Many readers may hold a buffer at the same time. */
const maxReadBytes = 256 * 1024;

/** Reads whole lines of a growing file. An unfinished line is left for the next call. */
export class LineReader implements Disposable {
  readonly #path: string;
  #descriptor: number | undefined;
  /** Bytes read. */
  position = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads some more lines: at least one, however long it is; none at the file's end. */
  next(): string[] {
    for (let limit = maxReadBytes; ; limit *= 2) {
      const left = this.size - this.position;
      const buffer = Buffer.allocUnsafe(Math.min(left, limit));
      if (buffer.length === 0 || this.#descriptor === undefined) return [];
      const count = readSync(this.#descriptor, buffer, 0, buffer.length, this.position);
      const end = buffer.subarray(0, count).lastIndexOf(0x0a) + 1;
      this.position += end;
      if (end > 0) return buffer.toString("utf8", 0, end - 1).split("\n");
      if (count < limit) return [];
    }
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  get size(): number {
    try {
      this.#descriptor ??= openSync(this.#path, readingStored);
      return fstatSync(this.#descriptor).size;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return 0;
      throw error;
    }
  }
}
