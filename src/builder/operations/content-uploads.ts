import type { UploadProgress } from "../../service/files/upload.ts";
import { streamOf } from "../../streams.ts";
import type { BuildJob } from "../job.ts";
import { createArchiveCollector } from "./gc.ts";

/** Uploads contents of an image, an archive or a repository, and hashes them on the way. Each is uploaded once. */
export interface ContentUploads {
  /** Returns the content's SHA-256, possibly before a small content has been sent. */
  add(content: AsyncGenerator<Uint8Array>, size: number): Promise<string>;
  /** Resolves when all have been sent, and reports the totals. */
  finish(): Promise<void>;
}

/** The size up to which contents are held in memory, so that several are sent at once while the archive is read. */
const maxHeldBytes = 1024 * 1024;
const maxConcurrent = 8;

/** Beyond `maxSent` contents, only hashes them: the RUN that needs them sends them together, as one archive. */
export function createContentUploads(build: BuildJob, maxSent: number): ContentUploads {
  const { service, store } = build.services;
  const begun = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
  const collect = createArchiveCollector();
  let failure: { error: unknown } | undefined;

  const isKnown = (sha256: string) => begun.has(sha256) || store.uploads.get(sha256) !== undefined;
  const note = (sha256: string, uuid: string, size: number) => {
    store.uploads.set(sha256, uuid);
    done.files += 1;
    done.sentBytes += size;
  };

  async function sendHeld(bytes: Uint8Array<ArrayBuffer>, sha256: string): Promise<void> {
    const body = new Blob([bytes]);
    const { uuid } = await service.uploadStream(() => body.stream(), { contentLength: bytes.byteLength });
    note(sha256, uuid, bytes.byteLength);
  }

  async function hold(content: AsyncGenerator<Uint8Array>, size: number): Promise<string> {
    const bytes = new Uint8Array(size);
    let at = 0;
    for await (const chunk of content) {
      bytes.set(chunk, at);
      at += chunk.byteLength;
    }
    const sha256 = Bun.CryptoHasher.hash("sha256", bytes, "hex");
    if (isKnown(sha256)) {
      done.files += 1;
      done.reused += 1;
      return sha256;
    }
    if (begun.size >= maxSent) return sha256;
    begun.add(sha256);
    while (underWay.size >= maxConcurrent) await Promise.race(underWay);
    if (failure !== undefined) throw failure.error;
    const sending = sendHeld(bytes, sha256)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => underWay.delete(sending));
    underWay.add(sending);
    return sha256;
  }

  async function stream(content: AsyncGenerator<Uint8Array>, size: number): Promise<string> {
    if (begun.size >= maxSent) {
      const hasher = new Bun.CryptoHasher("sha256");
      for await (const chunk of content) hasher.update(chunk);
      return hasher.digest("hex");
    }
    const before = { ...done };
    const progress = (bytes: number) => {
      build.emit({ type: "upload-progress", ...before, sentBytes: before.sentBytes + bytes });
    };
    const options = { contentLength: size, progress };
    const { uuid, sha256 } = await service.uploadStream(streamOf(content), options);
    begun.add(sha256);
    note(sha256, uuid, size);
    return sha256;
  }

  return {
    add(content, size) {
      collect();
      return size <= maxHeldBytes ? hold(content, size) : stream(content, size);
    },
    async finish() {
      await Promise.all(underWay);
      store.uploads.flush();
      if (failure !== undefined) throw failure.error;
      if (done.files > 0) build.emit({ type: "uploaded", ...done });
    },
  };
}
