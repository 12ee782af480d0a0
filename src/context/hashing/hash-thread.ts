/** The program of a thread: hashes the files sent to it, and reports now and then how many bytes it has read. */
import { openWithoutLinks } from "../../open-without-links.ts";
import { createPace } from "../../pace.ts";
import { serveThread } from "../../thread.ts";
import { createFileHasher, type FileToHash } from "./hash-file.ts";

/** The number of bytes between two reports of progress. */
const reportIntervalBytes = 32 * 1024 * 1024;

const hashFile = createFileHasher(createPace(undefined), openWithoutLinks);

serveThread(async (file: FileToHash, report: (bytes: number) => void) => {
  let unreported = 0;
  const flush = () => {
    report(unreported);
    unreported = 0;
  };
  const hash = await hashFile(file, (bytes) => {
    unreported += bytes;
    if (unreported >= reportIntervalBytes) flush();
  });
  flush();
  return hash;
});
