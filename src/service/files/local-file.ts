/** Reading a file that is to be what was hashed before; what is not is an error, never other bytes under its hash. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import type { LocalFile } from "../service.ts";

/**
 * The whole of a small file in memory: what is sent is what was checked. It blocks: a promise for every file of a large
 * context costs more than the file does.
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

/** A file's bytes, as a request's body that may be made again; `onBytes` hears how many of them were taken so far. */
interface FileBody {
  make(): AsyncGenerator<Uint8Array>;
  /** Nobody may have read the last one to its end. */
  close(): void;
}

/** Smaller chunks cost speed, larger ones memory: several files are sent at once. */
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
    // Without waiting: the name may stand for a pipe by now.
    return openSync(file.absolutePath, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Notices from the state of a file that is sent from the disk that somebody wrote to it. */
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
    /** Unchanged since before it was sent, and still what was hashed: then that was sent. */
    async checkContent() {
      // Before it is opened: it may have become a pipe, which nobody writes to.
      check();
      const hasher = new Bun.CryptoHasher("sha256");
      await reading(file, async () => {
        for await (const chunk of Bun.file(file.absolutePath).stream()) hasher.update(chunk);
      });
      if (hasher.digest("hex") !== file.sha256) throw changedFileError(file);
      check();
    },
  };
}

export function changedFileError(file: LocalFile): BoughError {
  return new BoughError(`${file.absolutePath} changed while it was being read`, {
    hint: "Build again once nothing writes to it any more. A log of this very command is kept elsewhere, or named in .dockerignore.",
  });
}

function stateOf(file: LocalFile) {
  try {
    return statSync(file.absolutePath, { bigint: true });
  } catch (error) {
    throw unreadable(file, error);
  }
}

async function reading<T>(file: LocalFile, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: LocalFile, cause: unknown): BoughError {
  return new BoughError(`cannot read ${file.absolutePath}: ${messageOf(cause)}`, { cause });
}
