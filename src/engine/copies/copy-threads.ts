import { availableParallelism } from "node:os";
import { leastBusy, startThread } from "../../thread.ts";
import type { PlacedFile } from "./file-spec.ts";
import type { CopyProblem } from "./verified-copy.ts";

/** A small file, and the path on this machine where nothing is likely to be yet. */
export interface CopyJob {
  file: PlacedFile;
  target: string;
}

/** What is not in place of a batch, each with its file's place in the batch. */
export type CopyProblems = readonly (readonly [index: number, problem: CopyProblem])[];

/** Three threads write as fast as most file systems make files. */
const maxThreads = 3;
/** Batches at a thread, so that it need not wait until this thread has time for it. */
const maxWaiting = 2;

export interface CopyThreads {
  /** Gives a batch to a thread that has room for it; `undefined`: there is none. Rejects where the file system fails. */
  give(jobs: readonly CopyJob[]): Promise<CopyProblems> | undefined;
  close(): void;
}

/** Threads that copy files beside this one: one a processor, this one's left out. */
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
