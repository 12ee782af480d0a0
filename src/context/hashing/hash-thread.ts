/** A thread's own program: hashes the files that it is sent, and answers with ThreadMessages. */
import { BoughError, messageOf } from "../../errors.ts";
import { createPace } from "../../pace.ts";
import { createFileHasher, type FileToHash } from "./hash-file.ts";
import type { ThreadMessage } from "./hash-threads.ts";

declare const self: Worker;

/** For a bar that moves. */
const reportedBytes = 32 * 1024 * 1024;

const hashFile = createFileHasher(createPace(undefined));

self.onmessage = async ({ data: file }: MessageEvent<FileToHash>) => {
  let unreported = 0;
  const report = () => {
    say({ kind: "bytes", bytes: unreported });
    unreported = 0;
  };
  try {
    const hash = await hashFile(file, (bytes) => {
      unreported += bytes;
      if (unreported >= reportedBytes) report();
    });
    report();
    say({ kind: "hash", hash });
  } catch (error) {
    const hint = error instanceof BoughError ? error.hint : undefined;
    say({ kind: "failure", message: messageOf(error), hint });
  }
};

function say(message: ThreadMessage): void {
  self.postMessage(message);
}
