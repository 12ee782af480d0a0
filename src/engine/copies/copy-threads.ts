import { availableParallelism } from "node:os";
import { leastBusy, startThread } from "../../thread.ts";
import type { PlacedFile } from "./file-spec.ts";
import type { CopyProblem } from "./verified-copy.ts";

/** A small file, and its target path on this machine, which usually does not exist yet. */
export interface CopyJob {
  file: PlacedFile;
  target: string;
}

/** The files of a batch that could not be copied, by their index in the batch. */
export type CopyProblems = readonly (readonly [index: number, problem: CopyProblem])[];

/** Three threads write as fast as most file systems make files. */
const maxThreads = 3;
/** Batches queued at a thread, so that it need not wait for this thread. */
const maxWaiting = 2;

export interface CopyThreads {
  /** Gives a batch to a thread with room for it; returns `undefined` if there is none. Rejects if the file system fails. */
  give(jobs: readonly CopyJob[]): Promise<CopyProblems> | undefined;
  close(): void;
}

/** Starts threads that copy files: one per processor, minus one for this thread. */
export function startCopyThreads(): CopyThreads {
  const count = Math.min(availableParallelism() - 1, maxThreads);
  const threads = Array.from({ length: count }, () =>
    startThread<readonly CopyJob[], CopyProblems>("./engine/copies/copy-thread.ts", { smol: true }),
  );
  return {
    give: (jobs) =>
      leastBusy(threads.filter((each) => each.isReady() && each.waiting() < maxWaiting))?.ask(jobs),
    close() {
      for (const thread of threads) thread.close();
    },
  };
}
