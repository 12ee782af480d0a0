/** The program of a copy thread: copies the small files that it receives, and responds with the problems of each batch. */
import { serveThread } from "../../thread.ts";
import type { CopyJob, CopyProblems } from "./copy-threads.ts";
import { createSmallCopier } from "./verified-copy.ts";

const copy = createSmallCopier();

serveThread(
  (jobs: readonly CopyJob[]): CopyProblems =>
    jobs.flatMap(({ file, target }, index) => {
      const problem = copy(file, target);
      return problem === undefined ? [] : [[index, problem] as const];
    }),
);
