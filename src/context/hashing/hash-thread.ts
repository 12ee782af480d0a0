/** The program of a thread: hashes the files sent to it, and reports now and then how many bytes it has read. */
import { openWithoutLinks } from "../../open-without-links.ts";
import { createPace } from "../../pace.ts";
import { serveThread } from "../../thread.ts";
import { createFileHasher, type FileToHash } from "./hash-file.ts";

/** The number of bytes after which progress is reported. */
const reportedBytes = 32 * 1024 * 1024;

const hashFile = createFileHasher(createPace(undefined), openWithoutLinks);

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
