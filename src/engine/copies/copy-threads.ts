import { availableParallelism } from "node:os";
import { threadUrl } from "../../thread-url.ts";
import type { StoredContent } from "../sandbox/root/verified-copy.ts";
import type { CopyProblem } from "./new-file.ts";

/** A small file, and the path on this machine where nothing is likely to be yet. */
export interface CopyJob {
  content: StoredContent;
  target: string;
}

/** What became of a batch; the first answer of a thread says that it has started. */
export interface CopyAnswer {
  /** Each with its file's place in the batch. */
  problems: [index: number, problem: CopyProblem][];
  /** A failure of the file system, such as a full disk: nothing after it was copied. */
  failure: { message: string; code: string | undefined } | undefined;
}

/** More write faster than most file systems make files. */
const maxThreads = 3;

export interface CopyThreads {
  /** Gives a batch to a thread that has room for it; `undefined`: there is none. Rejects where the file system fails. */
  give(jobs: readonly CopyJob[]): Promise<CopyAnswer["problems"]> | undefined;
  close(): void;
}

/** Threads that copy files beside this one: one a processor, this one's left out. */
export function startCopyThreads(): CopyThreads {
  const count = Math.min(availableParallelism() - 1, maxThreads);
  const free: CopyThread[] = [];
  const threads = Array.from({ length: count }, () => {
    const worker = new Worker(threadUrl("./engine/copies/copy-thread.ts"));
    const thread: CopyThread = { worker, waiting: [] };
    worker.onmessage = ({ data }: MessageEvent<CopyAnswer>) => {
      const batch = thread.waiting.shift();
      free.push(thread);
      if (batch === undefined) for (let more = 1; more < maxWaiting; more++) free.push(thread);
      else settle(batch, data);
    };
    // One that can't be started is never free.
    worker.onerror = (event) => {
      for (const { reject } of thread.waiting.splice(0)) reject(new Error(event.message));
    };
    return thread;
  });
  return {
    give(jobs) {
      const thread = free.shift();
      if (thread === undefined) return undefined;
      const batch = Promise.withResolvers<CopyAnswer["problems"]>();
      thread.waiting.push(batch);
      thread.worker.postMessage(jobs);
      return batch.promise;
    },
    close() {
      for (const { worker } of threads) worker.terminate();
    },
  };
}

/** A thread, and the batches that it has not answered yet, in its order. */
interface CopyThread {
  worker: Worker;
  waiting: PromiseWithResolvers<CopyAnswer["problems"]>[];
}

/** Jobs that wait at a thread, so that it need not wait until this thread has time for it. */
const maxWaiting = 2;

function settle(
  { resolve, reject }: PromiseWithResolvers<CopyAnswer["problems"]>,
  { problems, failure }: CopyAnswer,
): void {
  if (failure === undefined) resolve(problems);
  else reject(Object.assign(new Error(failure.message), { code: failure.code }));
}
