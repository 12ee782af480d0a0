import type { Pace } from "../../pace.ts";
import type { Path } from "../system/path.ts";
import { createBatchSharing } from "./batch-sharing.ts";
import { type LinkJob, linkBatch } from "./try-link.ts";

/** Makes hard links on several threads, this one included, in no particular order. */
export interface Linker extends AsyncDisposable {
  /**
   * Links `path`, which does not exist, to `existing`. Await its result before the next call.
   *
   * @param copy copies the file instead, if the file system refuses the link; called at the latest in `drain`
   */
  link(existing: Path, path: Path, copy: () => Promise<void> | undefined): Promise<void> | undefined;
  /** Resolves when all links are made. */
  drain(): Promise<void>;
}

/** This many links take as long as the start of a thread. */
const minLinksForThreads = 2_000;
/** A batch occupies this thread for a millisecond or two. */
const batchLinks = 128;

export function createLinker(pace: Pace): Linker {
  const sharing = createBatchSharing<LinkJob, "refused">(pace, {
    program: "./engine/copies/link-thread.ts",
    perform: linkBatch,
    minJobs: minLinksForThreads,
  });
  let batch: LinkJob[] = [];
  let copies: (() => Promise<void> | undefined)[] = [];
  const refused: (() => Promise<void> | undefined)[] = [];

  async function flush(): Promise<void> {
    const [jobs, ofJobs] = [batch, copies];
    [batch, copies] = [[], []];
    await sharing.run(jobs, (problems) => {
      for (const [index] of problems) {
        const copy = ofJobs[index];
        if (copy !== undefined) refused.push(copy);
      }
    });
    await copyRefused();
  }

  async function copyRefused(): Promise<void> {
    for (const copy of refused.splice(0)) {
      await pace.step();
      await copy();
    }
  }

  return {
    link(existing, path, copy) {
      batch.push([existing, path]);
      copies.push(copy);
      return batch.length < batchLinks ? undefined : flush();
    },
    async drain() {
      if (batch.length > 0) await flush();
      await sharing.drain();
      await copyRefused();
    },
    [Symbol.asyncDispose]: () => sharing[Symbol.asyncDispose](),
  };
}
