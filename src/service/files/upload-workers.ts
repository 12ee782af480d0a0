/**
 * Sends eight files at once, and more small ones, twice as many each round trip, as long as each request waits for a distant
 * service: until its responses take longer, it refuses requests, or there are as many as one process can send.
 */
import type { Clock } from "../../clock.ts";
import { childOf, createRequestDeadline, type RequestDeadline } from "../http/deadline.ts";
import type { LocalFile } from "./upload.ts";

interface UploadWorkers {
  /** Sends all files, each taken from the iterable when a worker is free. The first failure stops the others. */
  sendEach(files: Iterable<LocalFile>, parent: AbortSignal, send: SendFile): Promise<void>;
}

/** Returns the number of requests that it took to send the file; 0 if none was sent. */
type SendFile = (file: LocalFile, worker: UploadWorker) => Promise<number>;

export interface UploadWorker {
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

export function createUploadWorkers(clock: Clock): UploadWorkers {
  /** The number of workers to begin with: as many as have proved useful. */
  let count = minWorkers;
  /** The fastest response to a small file so far. */
  let fastestMilliseconds = Number.POSITIVE_INFINITY;

  async function sendEach(files: Iterable<LocalFile>, parent: AbortSignal, send: SendFile): Promise<void> {
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
          if (requests !== 1 || file.size > maxExtraBytes) continue;
          const took = clock.now() - since;
          fastestMilliseconds = Math.min(fastestMilliseconds, took);
          if (took >= farMilliseconds && took < fastestMilliseconds * crowdedFactor) add();
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
  }

  return { sendEach };
}

function isSmall(next: IteratorResult<LocalFile, unknown>): boolean {
  return next.done !== true && next.value.size <= maxExtraBytes;
}
