/** A thread's own program: copies the small files that it is sent, and answers with the problems of each batch. */
import { serveThread } from "../../thread.ts";
import type { CopyJob, CopyProblems } from "./copy-threads.ts";
import { createNewFileCopier } from "./new-file.ts";

const copy = createNewFileCopier();

serveThread(
  (jobs: readonly CopyJob[]): CopyProblems =>
    jobs.flatMap(({ content, target }, index) => {
      const problem = copy(content, target);
      return problem === undefined ? [] : [[index, problem] as const];
    }),
);
