/** Sends eight files at once, and up to 32 small ones where each request waits for a service that is far away. */
import type { Clock } from "../../clock.ts";
import { childOf } from "../http/abort.ts";
import { createRequestDeadline, type RequestDeadline } from "../http/deadline.ts";
import type { LocalFile } from "../service.ts";

export interface UploadWorkers {
  /** Sends each file, taken when its turn comes; the first failure stops the others. */
  sendEach(files: Iterable<LocalFile>, parent: AbortSignal, send: SendFile): Promise<void>;
}

/** Returns how many requests it took to send the file; 0 where none was sent. */
type SendFile = (file: LocalFile, worker: UploadWorker) => Promise<number>;

export interface UploadWorker {
  /** Aborted once another worker has failed. */
  stop: AbortSignal;
  /** The time limit of a small file's request. */
  deadline: RequestDeadline;
}

const minWorkers = 8;
const maxWorkers = 32;
/** Workers beyond the first eight send smaller files only: a slow line has to take all that is sent at once in time. */
const maxExtraBytes = 64 * 1024;
/** A service that takes longer for a small file is far away or slow: eight requests at once do not keep the line busy. */
const farMilliseconds = 20;
/** Leaves time for eight files of 1 MiB at once over a slow line. */
const smallFileMilliseconds = 180_000;

export function createUploadWorkers(clock: Clock): UploadWorkers {
  /** The number to begin with: what the service turned out to take. */
  let count = minWorkers;

  async function sendEach(files: Iterable<LocalFile>, parent: AbortSignal, send: SendFile): Promise<void> {
    parent.throwIfAborted();
    const stop = childOf(parent);
    const iterator = files[Symbol.iterator]();
    let next = iterator.next();
    const workers: Promise<void>[] = [];
    let working = 0;
    let limit = maxWorkers;

    function add(): void {
      if (working >= limit) return;
      workers.push(work(working++ >= minWorkers));
      count = Math.max(count, working);
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
          const requests = await send(file, { stop: stop.signal, deadline });
          // The service refuses requests, or the line breaks: more at once would make that worse.
          if (requests > 1) limit = count = minWorkers;
          const isFar = requests === 1 && clock.now() - since >= farMilliseconds;
          if (isFar && file.size <= maxExtraBytes) add();
        }
      } catch (error) {
        // Later failures are the stop's own doing.
        if (!stop.signal.aborted) stop.abort(error);
      } finally {
        working--;
        deadline.release();
      }
    }

    for (let left = count; left > 0; left--) add();
    try {
      // While they are waited for, others are added.
      for (const worker of workers) await worker;
    } finally {
      stop.release();
    }
    stop.signal.throwIfAborted();
  }

  return { sendEach };
}
