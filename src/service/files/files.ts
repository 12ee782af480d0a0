/** Deduplicated uploads: each content is sent once, and only if the service lacks it. */
import type { Clock } from "../../clock.ts";
import { childOf, createRequestDeadline, type RequestDeadline } from "../http/deadline.ts";
import type { ServiceResponse } from "../http/response.ts";
import type { ImageService } from "../service.ts";
import { lookUpFile, postFile, type StoredFile, storedFileIn } from "./file-calls.ts";
import { changedFileError, createFileBody, readChecked, watchForChanges } from "./local-file.ts";
import { sendUnhashed } from "./unhashed-file.ts";
import { createSendOnce, type KnownFiles, type LocalFile, type UploadProgress } from "./upload.ts";
import type { UploadStreamOptions } from "./upload-stream.ts";

interface SentFile {
  uuid: string;
  requests: number;
}

interface FilesOptions extends UploadStreamOptions {
  knownFiles: KnownFiles | undefined;
}

export type Files = Pick<ImageService, "uploadFiles" | "sendUnhashed" | "sendOnce" | "findFile">;

/** The size above which a file is looked up first: that costs less than an unneeded upload. */
const minLookedUpBytes = 1024 * 1024;
/** The time limit of an upload, besides the time for its bytes. Other uploads may share the line. */
const uploadTimeoutMilliseconds = 180_000;
const changeCheckIntervalMilliseconds = 1000;
/** A server that reads more slowly counts as one that does not read at all. */
const minBytesPerSecond = 64 * 1024;

export function createFiles({ transport, clock, signal, knownFiles }: FilesOptions): Files {
  let canLookUp = true;
  const sendEach = createUploadWorkers(clock);
  const sendOnce = createSendOnce(knownFiles);

  async function find(sha256: string, stop: AbortSignal): Promise<ServiceResponse | undefined> {
    return canLookUp ? await lookUpFile(transport, sha256, stop, () => (canLookUp = false)) : undefined;
  }

  async function sendSmall(file: LocalFile, { stop, deadline, onRepeat }: UploadWorker): Promise<SentFile> {
    const bytes = file.content ?? readChecked(file);
    let requests = 0;
    const body = () => {
      if (++requests > 1) onRepeat();
      return bytes;
    };
    const stored = await postFile(transport, { body, signal: stop, deadline });
    return { uuid: checked(file, stored).uuid, requests };
  }

  async function sendLarge(
    file: LocalFile,
    parent: AbortSignal,
    onBytes: (taken: number) => void,
  ): Promise<SentFile> {
    const guard = watchForChanges(file);
    const body = createFileBody(file, onBytes);
    const stop = childOf(parent);
    // If the file shrinks, the request waits forever for the announced bytes.
    const watch = async () => {
      for (;;) {
        await clock.sleep(changeCheckIntervalMilliseconds, stop.signal);
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
      return { uuid: checked(file, stored).uuid, requests: 1 };
    } finally {
      body.close();
      stop.abort(undefined);
      stop.release();
    }
  }

  return {
    sendOnce,

    async findFile(sha256) {
      const answer = await find(sha256, signal);
      return answer === undefined ? undefined : storedFileIn(answer)?.uuid;
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
      const started = new Set<string>();
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      /** Bytes sent of large files whose upload is not complete. */
      const underWay = new Map<string, number>();
      const report = () => {
        let { sentBytes } = done;
        for (const taken of underWay.values()) sentBytes += taken;
        progress?.({ ...done, sentBytes });
      };

      async function send(file: LocalFile, worker: UploadWorker): Promise<number> {
        if (started.has(file.sha256)) return 0;
        started.add(file.sha256);
        const large = file.size > minLookedUpBytes;
        const onBytes = (taken: number) => {
          underWay.set(file.sha256, taken);
          report();
        };
        let requests = 0;
        const uuid = await sendOnce(file.sha256, async () => {
          const answer = large ? await find(file.sha256, worker.stop) : undefined;
          const found = answer === undefined ? undefined : storedFileIn(answer)?.uuid;
          if (found !== undefined) return found;
          const sent = await (large ? sendLarge(file, worker.stop, onBytes) : sendSmall(file, worker));
          requests = sent.requests;
          return sent.uuid;
        });
        underWay.delete(file.sha256);
        ids.set(file.sha256, uuid);
        done.files++;
        options.onFile?.(file.sha256, requests === 0);
        if (requests > 0) done.sentBytes += file.size;
        else done.reused++;
        report();
        return requests;
      }
      try {
        await sendEach(files, stopping, send);
      } finally {
        knownFiles?.flush?.();
      }
      return ids;
    },
  };
}

function timeoutOf({ size }: Pick<LocalFile, "size">): number {
  return uploadTimeoutMilliseconds + (size / minBytesPerSecond) * 1000;
}

function checked(file: LocalFile, stored: StoredFile): StoredFile {
  if (stored.sha256 !== undefined && stored.sha256 !== file.sha256) throw changedFileError(file);
  return stored;
}

/** Sends all files, each taken from the iterable when a worker is free. The first failure stops the others. */
type SendEach = (files: Iterable<LocalFile>, parent: AbortSignal, send: SendFile) => Promise<void>;

/** Returns the number of requests that it took to send the file; 0 if none was sent. */
type SendFile = (file: LocalFile, worker: UploadWorker) => Promise<number>;

interface UploadWorker {
  /** Aborted once another worker has failed. */
  stop: AbortSignal;
  /** The time limit of a small file's request. */
  deadline: RequestDeadline;
  /** The sender calls it before it repeats a request. */
  onRepeat(): void;
}

const minWorkers = 8;
/** The limit of workers, which leaves room for other requests: Bun sends 256 at a time. */
const maxWorkers = 240;
/** Workers beyond the first eight send only smaller files: a slow line must finish all concurrent uploads in time. */
const maxExtraBytes = 64 * 1024;
/** A service that takes longer for a small file is distant or slow: eight requests at once don't use the whole line. */
const distantMilliseconds = 20;
/** The numbers of workers as long as there is no response, each after a further `distantMilliseconds`. */
const workersBeforeResponse = [32, 64];
/**
 * If a response takes so many times as long as the fastest, requests wait for each other: more at once gain nothing. A new
 * connection takes up to four round trips.
 */
const crowdedFactor = 5;
/** The time limit of a small file's request: enough for eight files of 1 MiB at once over a slow line. */
const smallFileTimeoutMilliseconds = 180_000;

/**
 * Sends eight files at once. On a distant service, it doubles the number of small ones each round trip, until responses take longer,
 * the service rejects requests, or the number is what one process can send.
 */
function createUploadWorkers(clock: Clock): SendEach {
  /** The number of workers to start with: as many as have proved useful. */
  let count = minWorkers;
  /** The fastest response to a small file so far. */
  let fastestMilliseconds = Number.POSITIVE_INFINITY;

  return async function sendEach(files, parent, send) {
    parent.throwIfAborted();
    const stop = childOf(parent);
    const iterator = files[Symbol.iterator]();
    let next = iterator.next();
    const workers: Promise<void>[] = [];
    let working = 0;
    let limit = maxWorkers;
    let hasResponded = false;

    function add(): void {
      if (working >= limit) return;
      workers.push(work(working++ >= minWorkers));
      count = Math.max(count, working);
    }

    /** Reduces the workers after a rejected request or a failed connection, which more requests at once would make worse. */
    function reduceWorkers(): void {
      limit = count = minWorkers;
    }

    /** Adds a worker if responses are late because of the distance, and not because of the number of requests. */
    function addIfDistant(tookMilliseconds: number): void {
      fastestMilliseconds = Math.min(fastestMilliseconds, tookMilliseconds);
      const isCrowded = tookMilliseconds >= fastestMilliseconds * crowdedFactor;
      if (tookMilliseconds >= distantMilliseconds && !isCrowded) add();
    }

    async function work(isExtra: boolean): Promise<void> {
      const deadline = createRequestDeadline({
        clock,
        milliseconds: smallFileTimeoutMilliseconds,
        parent: stop.signal,
      });
      try {
        while (!stop.signal.aborted && next.done !== true) {
          if (isExtra && (working > limit || next.value.size > maxExtraBytes)) break;
          const file = next.value;
          next = iterator.next();
          const since = clock.now();
          const requests = await send(file, { stop: stop.signal, deadline, onRepeat: reduceWorkers });
          hasResponded ||= requests > 0;
          if (requests === 1 && file.size <= maxExtraBytes) addIfDistant(clock.now() - since);
        }
      } catch (error) {
        // Later failures are caused by the abort itself.
        if (!stop.signal.aborted) stop.abort(error);
      } finally {
        working--;
        deadline.release();
      }
    }

    for (let left = count; left > 0; left--) add();
    for (const [step, number] of workersBeforeResponse.entries()) {
      clock.sleep((step + 1) * distantMilliseconds, stop.signal).then(
        () => {
          const target = () => Math.min(number, limit);
          while (!stop.signal.aborted && !hasResponded && working < target() && isSmall(next)) add();
        },
        () => undefined,
      );
    }
    try {
      // Workers are added to the list while it is awaited.
      for (const worker of workers) await worker;
    } finally {
      stop.release();
    }
    stop.signal.throwIfAborted();
  };
}

function isSmall(next: IteratorResult<LocalFile, unknown>): boolean {
  return next.done !== true && next.value.size <= maxExtraBytes;
}
