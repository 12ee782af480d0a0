/** Deduplicated upload: each content once, and only where the service does not have it. */
import type { Clock } from "../../clock.ts";
import { childOf } from "../http/abort.ts";
import type { Answer } from "../http/answer.ts";
import { forEachConcurrently } from "../http/concurrency.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageService, LocalFile, UploadProgress } from "../service.ts";
import { findFile, postFile, readFile, type StoredFile } from "./file-calls.ts";
import { changedFileError, createFileBody, readChecked, watchForChanges } from "./local-file.ts";
import { sendUnhashed } from "./unhashed-file.ts";

/** The local memory of what a service has: file ids by SHA-256. */
export interface KnownFiles {
  get(sha256: string): string | undefined;
  set(sha256: string, uuid: string): void;
  /** What was set may be kept together until then. */
  flush?(): void;
}

interface FilesOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
  knownFiles?: KnownFiles;
}

export type Files = Pick<ImageService, "uploadFiles" | "sendUnhashed" | "findFile">;

/** Above it a question is cheaper than sending the bytes for nothing. */
const askFirstAboveBytes = 1024 * 1024;
const maxConcurrentUploads = 8;
/** Eight small files at once over a slow line. */
const uploadTimeoutMilliseconds = 180_000;
const guardEveryMilliseconds = 1000;
/** A server that reads so slowly counts as one that does not read at all. */
const slowestBytesPerSecond = 64 * 1024;

export function createFiles({ transport, clock, signal, knownFiles }: FilesOptions): Files {
  let canAsk = true;

  async function find(sha256: string, stop: AbortSignal): Promise<Answer | undefined> {
    return canAsk ? await findFile(transport, sha256, stop, () => (canAsk = false)) : undefined;
  }

  async function sendSmall(file: LocalFile, stop: AbortSignal): Promise<string> {
    const bytes = readChecked(file);
    const timeoutMilliseconds = uploadTimeoutMilliseconds;
    return checked(file, await postFile(transport, { body: () => bytes, signal: stop, timeoutMilliseconds }))
      .uuid;
  }

  async function sendLarge(
    file: LocalFile,
    parent: AbortSignal,
    onBytes: (taken: number) => void,
  ): Promise<string> {
    const guard = watchForChanges(file);
    const body = createFileBody(file, onBytes);
    const stop = childOf(parent);
    // A file that shrinks leaves a request that waits for ever for bytes that it has promised.
    const watch = async () => {
      for (;;) {
        await clock.sleep(guardEveryMilliseconds, stop.signal);
        guard.check();
      }
    };
    watch().catch((error: unknown) => stop.abort(error));
    try {
      const stored = await postFile(transport, {
        body: () => body.make(),
        contentLength: file.size,
        reconcile: () => find(file.sha256, stop.signal),
        signal: stop.signal,
        timeoutMilliseconds: timeoutOf(file),
      });
      if (stored.sha256 === undefined) await guard.checkContent();
      return checked(file, stored).uuid;
    } finally {
      body.close();
      stop.abort(undefined);
      stop.release();
    }
  }

  return {
    async findFile(sha256) {
      const answer = await find(sha256, signal);
      return answer === undefined ? undefined : readFile(answer)?.uuid;
    },

    async sendUnhashed(file, options) {
      const stopping = AbortSignal.any([signal, options.signal]);
      const sending = { transport, clock, find, timeoutMilliseconds: timeoutOf(file) };
      const sent = await sendUnhashed(sending, file, { ...options, signal: stopping });
      knownFiles?.set(sent.sha256, sent.uuid);
      knownFiles?.flush?.();
      return sent;
    },

    async uploadFiles(files, progress, options = {}) {
      const ids = new Map<string, string>();
      const stopping = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
      const begun = new Set<string>();
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      /** Bytes of large files that are on their way. */
      const underWay = new Map<string, number>();
      const report = () => {
        if (progress === undefined) return;
        const taken = [...underWay.values()].reduce((sum, bytes) => sum + bytes, 0);
        progress({ ...done, sentBytes: done.sentBytes + taken });
      };

      async function upload(file: LocalFile, stop: AbortSignal): Promise<void> {
        if (begun.has(file.sha256)) return;
        begun.add(file.sha256);
        const large = file.size > askFirstAboveBytes;
        const known = options.areUnknown === true ? undefined : knownFiles?.get(file.sha256);
        const answer = large && known === undefined ? await find(file.sha256, stop) : undefined;
        const found = known ?? (answer === undefined ? undefined : readFile(answer)?.uuid);
        const onBytes = (taken: number) => {
          underWay.set(file.sha256, taken);
          report();
        };
        const uuid = found ?? (await (large ? sendLarge(file, stop, onBytes) : sendSmall(file, stop)));
        underWay.delete(file.sha256);
        ids.set(file.sha256, uuid);
        if (known === undefined) knownFiles?.set(file.sha256, uuid);
        done.files++;
        options.onFile?.(file.sha256, found !== undefined);
        if (found === undefined) done.sentBytes += file.size;
        else done.reused++;
        report();
      }
      try {
        await forEachConcurrently(files, maxConcurrentUploads, stopping, upload);
      } finally {
        knownFiles?.flush?.();
      }
      return ids;
    },
  };
}

function timeoutOf({ size }: Pick<LocalFile, "size">): number {
  return uploadTimeoutMilliseconds + (size / slowestBytesPerSecond) * 1000;
}

function checked(file: LocalFile, stored: StoredFile): StoredFile {
  if (stored.sha256 !== undefined && stored.sha256 !== file.sha256) throw changedFileError(file);
  return stored;
}
