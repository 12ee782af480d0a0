import type { Pace } from "../../pace.ts";
import { type CopyJob, type CopyThreads, startCopyThreads } from "./copy-threads.ts";
import type { PlacedFile } from "./file-spec.ts";
import { type CopyProblem, createLargeCopier, createSmallCopier, smallBytes } from "./verified-copy.ts";

export interface FileCopier extends Disposable {
  /** What it returns is to be waited for. Rejects, or throws, with what an earlier one has failed with, too. */
  copy(file: PlacedFile, target: string): Promise<void> | undefined;
  /** Resolves when all are in place. */
  drain(): Promise<void>;
}

/** Fewer are copied before a thread has started. */
const worthFiles = 400;
/** A batch keeps this thread for a few milliseconds. */
const batchFiles = 64;
const batchBytes = 1024 * 1024;

/**
 * Copies files to where most often nothing is, small ones on several threads, of which this is one: they are in place in no certain
 * order. `report`: told of each that is not.
 */
export function createFileCopier(
  pace: Pace,
  report: (file: PlacedFile, problem: CopyProblem) => void,
): FileCopier {
  const copySmall = createSmallCopier();
  const copyLarge = createLargeCopier();
  const underWay = new Set<Promise<void>>();
  let threads: CopyThreads | undefined;
  let failure: { error: unknown } | undefined;
  let copied = 0;
  let batch: CopyJob[] = [];
  let bytes = 0;

  function flush(): Promise<void> | undefined {
    if (failure !== undefined) throw failure.error;
    const jobs = batch;
    batch = [];
    bytes = 0;
    const given = threads?.give(jobs);
    if (given !== undefined) {
      const work = given
        .then((problems) => {
          for (const [index, problem] of problems) {
            const file = jobs[index]?.file;
            if (file !== undefined) report(file, problem);
          }
        })
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => underWay.delete(work));
      underWay.add(work);
      return pace.step();
    }
    for (const { file, target } of jobs) {
      const problem = copySmall(file, target);
      if (problem !== undefined) report(file, problem);
    }
    copied += jobs.length;
    if (threads === undefined && copied >= worthFiles) threads = startCopyThreads();
    // The threads' answers come between two turns.
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => pace.step());
  }

  async function copyAlone(file: PlacedFile, target: string): Promise<void> {
    await pace.step();
    const problem = await copyLarge(file, target);
    if (problem !== undefined) report(file, problem);
  }

  return {
    copy(file, target) {
      if (file.size >= smallBytes) return copyAlone(file, target);
      batch.push({ file, target });
      bytes += file.size;
      return batch.length >= batchFiles || bytes >= batchBytes ? flush() : undefined;
    },
    async drain() {
      if (batch.length > 0) await flush();
      await Promise.all(underWay);
      if (failure !== undefined) throw failure.error;
    },
    [Symbol.dispose]() {
      threads?.close();
    },
  };
}
