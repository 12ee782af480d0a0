import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "../../system-error.ts";
import { readingStored } from "./stored-content.ts";

/** Bytes read at once; limited, since many readers may hold a buffer at the same time. */
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
