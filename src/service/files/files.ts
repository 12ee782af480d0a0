/** Deduplicated upload: each content is sent once, and only if the service does not have it. */
import type { Clock } from "../../clock.ts";
import type { Answer } from "../http/answer.ts";
import { childOf, createRequestDeadline, type RequestDeadline } from "../http/deadline.ts";
import type { ImageService } from "../service.ts";
import { findFile, postFile, readFile, type StoredFile } from "./file-calls.ts";
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

/** Larger files are looked up first: that costs less than an unneeded upload. */
const askFirstAboveBytes = 1024 * 1024;
/** Leaves time for other uploads at the same time. */
const uploadTimeoutMilliseconds = 180_000;
const guardEveryMilliseconds = 1000;
/** A server that reads more slowly counts as one that does not read at all. */
const slowestBytesPerSecond = 64 * 1024;

export function createFiles({ transport, clock, signal, knownFiles }: FilesOptions): Files {
  let canAsk = true;
  const sendEach = createUploadWorkers(clock);
  const sendOnce = createSendOnce(knownFiles);

  async function find(sha256: string, stop: AbortSignal): Promise<Answer | undefined> {
    return canAsk ? await findFile(transport, sha256, stop, () => (canAsk = false)) : undefined;
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
      /** Bytes sent of the large files that are under way. */
      const underWay = new Map<string, number>();
      const report = () => {
        let { sentBytes } = done;
        for (const taken of underWay.values()) sentBytes += taken;
        progress?.({ ...done, sentBytes });
      };

      async function send(file: LocalFile, worker: UploadWorker): Promise<number> {
        if (begun.has(file.sha256)) return 0;
        begun.add(file.sha256);
        const large = file.size > askFirstAboveBytes;
        const onBytes = (taken: number) => {
          underWay.set(file.sha256, taken);
          report();
        };
        let requests = 0;
        const uuid = await sendOnce(file.sha256, async () => {
          const answer = large ? await find(file.sha256, worker.stop) : undefined;
          const found = answer === undefined ? undefined : readFile(answer)?.uuid;
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
  return uploadTimeoutMilliseconds + (size / slowestBytesPerSecond) * 1000;
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
  /** Has to be called before a request is sent again. */
  onRepeat(): void;
}

const minWorkers = 8;
/** Leaves room for other requests: Bun sends 256 at a time. */
const maxWorkers = 240;
/** Workers beyond the first eight send only smaller files: a slow line must finish all concurrent uploads in time. */
const maxExtraBytes = 64 * 1024;
/** A service that takes longer for a small file is distant or slow: eight requests at once don't use the whole line. */
const farMilliseconds = 20;
/** The numbers of workers while no response has come, one step after each `farMilliseconds`: a distant service's takes long. */
const widths = [32, 64];
/**
 * If a response takes so many times as long as the fastest, requests wait for each other: more at once gain nothing. A new
 * connection takes up to four round trips.
 */
const crowdedFactor = 5;
/** Leaves time for eight files of 1 MiB at once over a slow line. */
const smallFileMilliseconds = 180_000;

/**
 * Sends eight files at once, and more small ones, twice as many each round trip, as long as each request waits for a distant
 * service: until its responses take longer, it refuses requests, or there are as many as one process can send.
 */
function createUploadWorkers(clock: Clock): SendEach {
  /** The number of workers to begin with: as many as have proved useful. */
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
    let hasAnswered = false;

    function add(): void {
      if (working >= limit) return;
      workers.push(work(working++ >= minWorkers));
      count = Math.max(count, working);
    }

    /** The service refuses requests, or the line fails: more requests at once would make that worse. */
    function narrow(): void {
      limit = count = minWorkers;
    }

    /** A service that answers late, but not later the more it is asked, takes more requests at once. */
    function addIfFar(took: number): void {
      fastestMilliseconds = Math.min(fastestMilliseconds, took);
      if (took >= farMilliseconds && took < fastestMilliseconds * crowdedFactor) add();
    }

    async function work(isExtra: boolean): Promise<void> {
      const deadline = createRequestDeadline({
        clock,
        milliseconds: smallFileMilliseconds,
        parent: stop.signal,
      });
      try {
        while (!stop.signal.aborted && next.done !== true) {
          if (isExtra && (working > limit || next.value.size > maxExtraBytes)) break;
          const file = next.value;
          next = iterator.next();
          const since = clock.now();
          const requests = await send(file, { stop: stop.signal, deadline, onRepeat: narrow });
          hasAnswered ||= requests > 0;
          if (requests === 1 && file.size <= maxExtraBytes) addIfFar(clock.now() - since);
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
    for (const [step, width] of widths.entries()) {
      clock.sleep((step + 1) * farMilliseconds, stop.signal).then(
        () => {
          while (!stop.signal.aborted && !hasAnswered && working < Math.min(width, limit) && isSmall(next))
            add();
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
