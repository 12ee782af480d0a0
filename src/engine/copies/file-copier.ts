import { dirname } from "node:path";
import type { Pace } from "../../pace.ts";
import { type CopyJob, type CopyThreads, startCopyThreads } from "./copy-threads.ts";
import type { EarlySync } from "./early-sync.ts";
import type { PlacedFile } from "./file-spec.ts";
import { type CopyProblem, createLargeCopier, createSmallCopier, smallBytes } from "./verified-copy.ts";

interface FileCopier extends Disposable {
  /** Await its result before the next call. Rejects or throws, also with the error of an earlier file. */
  copy(file: PlacedFile, target: string): Promise<void> | undefined;
  /** Resolves when all files are copied. */
  drain(): Promise<void>;
}

/** Fewer files are copied before a thread has started. */
const minFilesForThreads = 400;
/** A batch occupies this thread for a few milliseconds. */
const maxBatchFiles = 128;
const maxBatchBytes = 1024 * 1024;
/** From this size on, a batch ends with its directory: threads that create files in the same one wait for each other. */
const minBatchFiles = 32;

/**
 * Creates a copier for files whose targets usually do not exist yet. It copies small files on several threads, this one included,
 * in no particular order. Calls `report` for each file that could not be copied.
 */
export function createFileCopier(
  pace: Pace,
  report: (file: PlacedFile, problem: CopyProblem) => void,
  early?: EarlySync,
): FileCopier {
  const copySmall = createSmallCopier();
  const copyLarge = createLargeCopier((bytes) => early?.addPart(bytes));
  const running = new Set<Promise<void>>();
  let threads: CopyThreads | undefined;
  let failure: { error: unknown } | undefined;
  let copied = 0;
  let batch: CopyJob[] = [];
  let bytes = 0;
  let parent = "";

  function flush(): Promise<void> | undefined {
    if (failure !== undefined) throw failure.error;
    const jobs = batch;
    early?.addFiles(jobs.length, bytes);
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
        .finally(() => running.delete(work));
      running.add(work);
      return pace.step();
    }
    for (const { file, target } of jobs) {
      const problem = copySmall(file, target);
      if (problem !== undefined) report(file, problem);
    }
    copied += jobs.length;
    if (threads === undefined && copied >= minFilesForThreads) threads = startCopyThreads();
    // The event loop delivers the threads' responses meanwhile.
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
      const before = parent;
      parent = dirname(target);
      const isFull = batch.length >= maxBatchFiles || bytes >= maxBatchBytes;
      const isEnd = isFull || (batch.length >= minBatchFiles && parent !== before);
      const flushing = isEnd ? flush() : undefined;
      batch.push({ file, target });
      bytes += file.size;
      return flushing;
    },
    async drain() {
      if (batch.length > 0) await flush();
      await Promise.all(running);
      if (failure !== undefined) throw failure.error;
    },
    [Symbol.dispose]() {
      threads?.close();
    },
  };
}
