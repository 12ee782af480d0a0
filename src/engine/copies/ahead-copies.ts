import type { Database } from "bun:sqlite";
import { chmodSync, chownSync, renameSync, rmSync, utimesSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { createPace } from "../../pace.ts";
import type { AheadCopy, AheadOptions, LentFile } from "../../service/wire/file.ts";
import type { UnhashedFile } from "../../service/wire/unhashed-file.ts";
import type { Layout } from "../layout.ts";
import type { LayerSync } from "../records/layer-sync.ts";
import { latestFailedSync } from "../records/unsynced-layers.ts";
import { creating } from "../system/owner-and-mode.ts";
import { EarlySync } from "./early-sync.ts";

interface AheadCopiesHost {
  database: Database;
  layout: Layout;
  layerSync: Pick<LayerSync, "startEarly">;
}

interface WaitingCopy {
  path: string;
  size: number;
  /** The latest failed sync before the copy was begun. */
  failedSync: number;
}

const chunkBytes = 1024 * 1024;

/**
 * Copies of large files that were made while the files were hashed, before an operation names them. A copy is in the scratch
 * directory until an operation takes it.
 */
export class AheadCopies {
  readonly #host: AheadCopiesHost;
  /** By SHA-256. */
  readonly #waiting = new Map<string, WaitingCopy>();

  constructor(host: AheadCopiesHost) {
    this.#host = host;
  }

  /** Hashes a file, and copies it if that is possible. Rejects if the file can't be read or has changed. */
  async make(file: UnhashedFile, options: AheadOptions): Promise<AheadCopy> {
    const { database, layout, layerSync } = this.#host;
    const path = join(layout.scratch, crypto.randomUUID());
    const remove = () => rmSync(path, { force: true });
    const copy = { path, size: file.size, failedSync: latestFailedSync(database) };
    let isKept = false;
    try {
      const { sha256, isCopied } = await copyAhead(file, path, options, new EarlySync(layerSync));
      isKept = isCopied && !this.#waiting.has(sha256);
      if (!isKept) return { sha256, drop() {} };
      this.#waiting.set(sha256, copy);
      const isWaiting = () => this.#waiting.get(sha256) === copy && this.#waiting.delete(sha256);
      return { sha256, drop: () => void (isWaiting() && remove()) };
    } finally {
      if (!isKept) remove();
    }
  }

  /** Moves the copy of a file to `target`, where nothing is. Returns false if there is none that can be used. */
  place(file: LentFile, target: string): boolean {
    const copy = this.#waiting.get(file.sha256);
    if (copy === undefined || copy.size !== file.size) return false;
    this.#waiting.delete(file.sha256);
    try {
      // The kernel may have failed to write the copy. Failures from now on are noted for the operation that takes it.
      if (latestFailedSync(this.#host.database) !== copy.failedSync) return false;
      chownSync(copy.path, file.uid, file.gid);
      chmodSync(copy.path, file.mode);
      if (file.mtime !== undefined) utimesSync(copy.path, file.mtime, file.mtime);
      renameSync(copy.path, target);
      return true;
    } catch {
      // The file itself is copied instead, which reports what is wrong with the target.
      return false;
    } finally {
      rmSync(copy.path, { force: true });
    }
  }
}

/**
 * Returns a file's SHA-256, and copies its bytes to the new file `path` meanwhile. `isCopied`: false if that failed, for example on
 * a full disk; then the file at `path`, if any, is useless. Rejects if the file itself can't be read or has changed.
 */
async function copyAhead(
  { size, open: openSource }: UnhashedFile,
  path: string,
  { signal, onBytes }: AheadOptions,
  early: EarlySync,
): Promise<{ sha256: string; isCopied: boolean }> {
  const source = openSource();
  const target = await createTarget(path);
  try {
    const pace = createPace(signal);
    const hasher = new Bun.CryptoHasher("sha256");
    let [chunk, other] = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)];
    for (let at = 0; at < size; ) {
      const length = source.read(chunk, Math.min(chunkBytes, size - at), at);
      if (length === 0) throw source.changed();
      const bytes = chunk.subarray(0, length);
      hasher.update(bytes);
      // Another thread writes it while this one hashes the next.
      await target.write(bytes);
      at += length;
      onBytes(length);
      early.addPart(length);
      await pace.step();
      [chunk, other] = [other, chunk];
    }
    const isCopied = await target.close();
    source.requireUnchanged();
    return { sha256: hasher.digest("hex"), isCopied };
  } finally {
    await target.close();
    source.close();
  }
}

/** Creates a file. Errors of writing to it show only when it is closed. */
async function createTarget(path: string) {
  let file: FileHandle | undefined = await open(path, creating, 0o600).catch(() => undefined);
  let isWhole = file !== undefined;
  let writing = Promise.resolve();

  async function writeAll(bytes: Uint8Array): Promise<void> {
    try {
      for (let written = 0; written < bytes.length && isWhole; )
        written += (await file?.write(bytes, written))?.bytesWritten ?? 0;
    } catch {
      isWhole = false;
    }
  }

  return {
    /** Resolves when the bytes written before are no longer needed. */
    async write(bytes: Uint8Array): Promise<void> {
      await writing;
      writing = writeAll(bytes);
    },
    /** Returns true if all bytes were written. */
    async close(): Promise<boolean> {
      await writing;
      const closing = file;
      file = undefined;
      await closing?.close().catch(() => {
        isWhole = false;
      });
      return isWhole;
    },
  };
}
