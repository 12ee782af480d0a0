/** How many files are sent at once: eight, and more of small ones where each of them waits for a service that is far away. */
import type { Clock } from "../../clock.ts";
import { childOf } from "../http/abort.ts";
import { createDeadline, type Deadline } from "../http/deadline.ts";
import type { LocalFile } from "../service.ts";

interface WorkersOptions {
  clock: Clock;
  parent: AbortSignal;
  /** Returns how many requests it took to send the file; 0 where none was sent. */
  send(file: LocalFile, worker: UploadWorker): Promise<number>;
}

export interface UploadWorker {
  /** Aborted once another worker has failed. */
  stop: AbortSignal;
  /** The time limit of a small file's request. */
  deadline: Deadline;
}

const leastWorkers = 8;
const mostWorkers = 32;
/** What more than eight send at once: together no more than eight files of 1 MiB, which a slow line has to take in time. */
const extraBytes = 64 * 1024;
/** Whoever takes so long for a small file is far away, or slow: in either case not kept busy by eight. */
const farMilliseconds = 20;
/** Eight small files at once over a slow line. */
const smallFileMilliseconds = 180_000;

/** Sends each file, taken when its turn comes; the first failure stops the others. */
export async function sendEach(
  files: Iterable<LocalFile>,
  { clock, parent, send }: WorkersOptions,
): Promise<void> {
  parent.throwIfAborted();
  const stop = childOf(parent);
  const iterator = files[Symbol.iterator]();
  let next = iterator.next();
  const workers: Promise<void>[] = [];
  let working = 0;
  let most = mostWorkers;

  function add(): void {
    if (working >= most) return;
    workers.push(work(working++ >= leastWorkers));
  }

  async function work(isExtra: boolean): Promise<void> {
    const deadline = createDeadline({ clock, milliseconds: smallFileMilliseconds, parent: stop.signal });
    try {
      while (!stop.signal.aborted && next.done !== true) {
        if (isExtra && (working > most || next.value.size > extraBytes)) break;
        const file = next.value;
        next = iterator.next();
        const since = clock.now();
        const requests = await send(file, { stop: stop.signal, deadline });
        // It takes no more than it is sent, or the line breaks: more at once would make that worse.
        if (requests > 1) most = leastWorkers;
        const isFar = requests === 1 && clock.now() - since >= farMilliseconds;
        if (isFar && file.size <= extraBytes) add();
      }
    } catch (error) {
      // Later failures are the stop's own doing.
      if (!stop.signal.aborted) stop.abort(error);
    } finally {
      working--;
      deadline.release();
    }
  }

  for (let count = 0; count < leastWorkers; count++) add();
  try {
    // While they are waited for, others are added.
    for (const worker of workers) await worker;
  } finally {
    stop.release();
  }
  stop.signal.throwIfAborted();
}
