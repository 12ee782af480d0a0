/** A thread's own program: hashes the files that it is sent, and tells now and then how many bytes it has read. */
import { createPace } from "../../pace.ts";
import { serveThread } from "../../thread.ts";
import { createFileHasher, type FileToHash } from "./hash-file.ts";

/** The progress bar moves at least that often. */
const reportedBytes = 32 * 1024 * 1024;

const hashFile = createFileHasher(createPace(undefined));

serveThread(async (file: FileToHash, say: (bytes: number) => void) => {
  let unreported = 0;
  const report = () => {
    say(unreported);
    unreported = 0;
  };
  const hash = await hashFile(file, (bytes) => {
    unreported += bytes;
    if (unreported >= reportedBytes) report();
  });
  report();
  return hash;
});
