import { availableParallelism } from "node:os";
import type { Pace } from "../../pace.ts";
import { leastBusy, startThread } from "../../thread.ts";

/** The jobs of a batch that could not be done: the index of each, and the reason. */
export type Problems<Problem> = readonly (readonly [index: number, problem: Problem])[];

/** Shares batches of small jobs between this thread and others, which do them in no particular order. */
interface BatchSharing<Job, Problem> extends AsyncDisposable {
  /**
   * Does a batch, or has a thread do it. Await its result before the next call: `report` may be called after it, too, until
   * `drain`. Throws or rejects if a batch failed, perhaps an earlier one.
   */
  run(jobs: readonly Job[], report: (problems: Problems<Problem>) => void): Promise<void> | undefined;
  /** Resolves when all batches are done. Rejects if one failed. */
  drain(): Promise<void>;
}

/** Three threads write as fast as most file systems make files. */
const maxThreads = 3;
/** The number of batches that are queued at a thread, so that it need not wait for this thread. */
const maxWaiting = 2;

/**
 * @param program the path in src/ of the threads' program, which does batches
 * @param perform does a batch in this thread
 * @param minJobs the number of jobs that this thread does before others are started
 */
export function createBatchSharing<Job, Problem>(
  pace: Pace,
  options: { program: string; perform: (jobs: readonly Job[]) => Problems<Problem>; minJobs: number },
): BatchSharing<Job, Problem> {
  const { program, perform, minJobs } = options;
  const running = new Set<Promise<void>>();
  let threads: Threads<Job, Problem> | undefined;
  let failure: { error: unknown } | undefined;
  let done = 0;
  return {
    run(jobs, report) {
      if (failure !== undefined) throw failure.error;
      const sent = threads?.send(jobs);
      if (sent !== undefined) {
        const work = sent
          .then(report)
          .catch((error: unknown) => {
            failure ??= { error };
          })
          .finally(() => running.delete(work));
        running.add(work);
        return pace.step();
      }
      report(perform(jobs));
      done += jobs.length;
      if (threads === undefined && done >= minJobs) threads = startThreads(program);
      // The event loop delivers the threads' responses meanwhile.
      return new Promise<void>((resolve) => setImmediate(resolve)).then(() => pace.step());
    },
    async drain() {
      await Promise.all(running);
      if (failure !== undefined) throw failure.error;
    },
    async [Symbol.asyncDispose]() {
      // A thread must not write to a directory that is removed next.
      await Promise.all(running);
      threads?.close();
    },
  };
}

interface Threads<Job, Problem> {
  /** Sends a batch to a thread with room for it; returns `undefined` if there is none. Rejects if the file system fails. */
  send(jobs: readonly Job[]): Promise<Problems<Problem>> | undefined;
  close(): void;
}

/** Starts threads: one per processor, minus one for this thread. */
function startThreads<Job, Problem>(program: string): Threads<Job, Problem> {
  const count = Math.min(availableParallelism() - 1, maxThreads);
  const threads = Array.from({ length: count }, () =>
    startThread<readonly Job[], Problems<Problem>>(program, { smol: true }),
  );
  return {
    send: (jobs) =>
      leastBusy(threads.filter((each) => each.isReady() && each.waiting() < maxWaiting))?.send(jobs),
    close() {
      for (const thread of threads) thread.close();
    },
  };
}
