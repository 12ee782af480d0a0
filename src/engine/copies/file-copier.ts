import { dirname } from "node:path";
import type { Pace } from "../../pace.ts";
import { createBatchSharing } from "./batch-sharing.ts";
import type { EarlySync } from "./early-sync.ts";
import type { PlacedFile } from "./file-spec.ts";
import {
  type CopyJob,
  type CopyProblem,
  createBatchCopier,
  createLargeCopier,
  smallBytes,
} from "./verified-copy.ts";

interface FileCopier extends AsyncDisposable {
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
  const sharing = createBatchSharing<CopyJob, CopyProblem>(pace, {
    program: "./engine/copies/copy-thread.ts",
    perform: createBatchCopier(),
    minJobs: minFilesForThreads,
  });
  const copyLarge = createLargeCopier((bytes) => early?.addPart(bytes));
  let batch: CopyJob[] = [];
  let bytes = 0;
  let parent = "";

  function flush(): Promise<void> | undefined {
    const jobs = batch;
    early?.addFiles(jobs.length, bytes);
    batch = [];
    bytes = 0;
    return sharing.run(jobs, (problems) => {
      for (const [index, problem] of problems) {
        const file = jobs[index]?.file;
        if (file !== undefined) report(file, problem);
      }
    });
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
      await sharing.drain();
    },
    [Symbol.asyncDispose]: () => sharing[Symbol.asyncDispose](),
  };
}
