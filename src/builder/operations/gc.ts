import { edenGC } from "bun:jsc";

/**
 * A step over a large context leaves several times as much garbage as it keeps, and the collector would let it pile up. Smaller
 * steps are not worth the pause of some 50 ms.
 */
export function collectGarbage(files: number): void {
  if (files >= manyFiles) Bun.gc(true);
}

const manyFiles = 50_000;

/**
 * Collects, now and then during an upload, the garbage of the latest files, some 10 KiB each. This takes a few ms, as it skips
 * older objects. A full collection runs less often, because some garbage always gets old.
 */
export function createUploadCollector(): (files: number) => void {
  let collectAt = uploadsBetween;
  return (files) => {
    if (files < collectAt) return;
    if (collectAt % uploadsBetweenAll === 0) Bun.gc(true);
    else edenGC();
    collectAt += uploadsBetween;
  };
}

/** Collects between steps over a large archive, which has taken seconds already. */
export function collectBetweenSteps(files: number): void {
  if (files >= entriesBetweenAll) Bun.gc(true);
}

/** Collects after entries of an archive, each of which leaves some 20 KiB of garbage. */
export function createArchiveCollector(): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count % entriesBetweenAll === 0) Bun.gc(true);
    else if (count % entriesBetween === 0) edenGC();
  };
}

/** Collects after a command's output, each byte of which is copied a dozen times: the garbage would pile up. */
export function createOutputCollector(): (bytes: number) => void {
  let left = outputBetween;
  return (bytes) => {
    left -= bytes;
    if (left > 0) return;
    Bun.gc(true);
    left = outputBetween;
  };
}

const outputBetween = 4 * 1024 * 1024;
const entriesBetween = 250;
const entriesBetweenAll = 5000;
const uploadsBetween = 1000;
const uploadsBetweenAll = 10_000;
