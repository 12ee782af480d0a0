import { edenGC } from "bun:jsc";

/**
 * A step over a large context leaves several times as much behind as it keeps, and the collector would let that pile up.
 * Smaller ones are not worth the pause, of some 50 ms.
 */
export function collectGarbage(files: number): void {
  if (files >= manyFiles) Bun.gc(true);
}

const manyFiles = 50_000;

/**
 * Takes away, now and then during an upload, what the latest files have left behind, some 10 KiB each. That takes a few ms, for
 * all that is older is not looked through; more rarely it is, since something always gets old before its end.
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

/** Collects between steps over what an archive has brought: such a tree has taken seconds already. */
export function collectBetweenSteps(files: number): void {
  if (files >= entriesBetweenAll) Bun.gc(true);
}

/** Collects after entries of an archive, each of which leaves some 20 KiB behind. */
export function createArchiveCollector(): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count % entriesBetweenAll === 0) Bun.gc(true);
    else if (count % entriesBetween === 0) edenGC();
  };
}

/** Collects after a command's output: on its way each byte is copied a dozen times, and the collector would let that pile up. */
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
