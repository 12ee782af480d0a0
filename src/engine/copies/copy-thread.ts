/** A thread's own program: copies the small files that it is sent, and answers with what became of each batch. */
import { messageOf } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import type { CopyAnswer, CopyJob } from "./copy-threads.ts";
import { createNewFileCopier } from "./new-file.ts";

declare const self: Worker;

const copy = createNewFileCopier();

self.onmessage = ({ data: jobs }: MessageEvent<readonly CopyJob[]>) => {
  const answer: CopyAnswer = { problems: [], failure: undefined };
  try {
    for (const [index, { content, target }] of jobs.entries()) {
      const problem = copy(content, target);
      if (problem !== undefined) answer.problems.push([index, problem]);
    }
  } catch (error) {
    answer.failure = { message: messageOf(error), code: errorCode(error) };
  }
  say(answer);
};

function say(answer: CopyAnswer): void {
  self.postMessage(answer);
}

say({ problems: [], failure: undefined });
