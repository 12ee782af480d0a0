/** Reads files that were hashed before. A file that has changed since is an error: it is never sent under the old hash. */
import { closeSync, fstatSync, lstatSync, readSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import { openWithoutLinks } from "../../open-without-links.ts";
import { errorCode } from "../../system-error.ts";
import type { LocalFile } from "./upload.ts";

/**
 * Returns the whole content of a small file: what is sent is what was checked. It blocks, because a promise for every file of a
 * large context costs more than reading the file.
 */
export function readChecked(file: LocalFile): Uint8Array {
  const bytes = readWhole(file);
  if (Bun.CryptoHasher.hash("sha256", bytes, "hex") !== file.sha256) throw changedFileError(file);
  return bytes;
}

function readWhole(file: LocalFile): Uint8Array {
  let descriptor: number | undefined;
  try {
    descriptor = openRegular(file);
    if (fstatSync(descriptor).size !== file.size) throw changedFileError(file);
    const bytes = new Uint8Array(file.size);
    if (readSync(descriptor, bytes, 0, file.size, null) !== file.size) throw changedFileError(file);
    return bytes;
  } catch (error) {
    throw error instanceof BoughError ? error : unreadable(file, error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** A file's bytes as a request body that can be made again. `onBytes` gets the number of bytes taken so far. */
interface FileBody {
  make(): AsyncGenerator<Uint8Array>;
  /** Closes the file: the last body may not have been read to its end. */
  close(): void;
}

/** The size of a chunk: smaller ones cost speed, larger ones memory, since several files are sent at once. */
const chunkBytes = 1024 * 1024;

export function createFileBody(file: LocalFile, onBytes: (taken: number) => void): FileBody {
  let descriptor: number | undefined;
  const close = () => {
    if (descriptor !== undefined) closeSync(descriptor);
    descriptor = undefined;
  };
  return {
    async *make() {
      close();
      const own = openRegular(file);
      descriptor = own;
      for (let taken = 0; taken < file.size; ) {
        onBytes(taken);
        const chunk = new Uint8Array(Math.min(chunkBytes, file.size - taken));
        if (descriptor !== own) return;
        const length = readSync(own, chunk, 0, chunk.length, taken);
        if (length === 0) throw changedFileError(file);
        yield chunk.subarray(0, length);
        taken += length;
      }
      onBytes(file.size);
    },
    close,
  };
}

function openRegular(file: LocalFile): number {
  try {
    return openWithoutLinks(file.absolutePath);
  } catch (error) {
    throw errorCode(error) === "ELOOP" ? changedFileError(file) : unreadable(file, error);
  }
}

/** Returns checks that a file was not written to while it is sent from the disk. */
export function watchForChanges(file: LocalFile) {
  const before = stateOf(file);
  const check = () => {
    const now = stateOf(file);
    const fields = ["dev", "ino", "size", "mtimeNs", "ctimeNs"] as const;
    if (now.size !== BigInt(file.size) || fields.some((field) => before[field] !== now[field])) {
      throw changedFileError(file);
    }
  };
  check();
  return {
    check,
    /** Checks that the file is unchanged and still has its hash, so that the right content was sent. */
    async checkContent() {
      // Checked before opening: the file may have become a pipe without a writer.
      check();
      const hasher = new Bun.CryptoHasher("sha256");
      try {
        for await (const chunk of Bun.file(file.absolutePath).stream()) hasher.update(chunk);
      } catch (error) {
        throw unreadable(file, error);
      }
      if (hasher.digest("hex") !== file.sha256) throw changedFileError(file);
      check();
    },
  };
}

export function changedFileError(file: LocalFile): BoughError {
  return new BoughError(`${file.absolutePath} changed while it was being read`, {
    hint: "Build again when nothing writes to it any more. If this command writes a log into the context, move the log or add it to .dockerignore.",
  });
}

function stateOf(file: LocalFile) {
  try {
    return lstatSync(file.absolutePath, { bigint: true });
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: LocalFile, cause: unknown): BoughError {
  return new BoughError(`cannot read ${file.absolutePath}: ${messageOf(cause)}`, { cause });
}
