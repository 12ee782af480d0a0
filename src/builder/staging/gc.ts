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
 * For an upload's progress: now and then takes away what the latest ones have left behind, some 10 KiB each. That takes a few
 * ms, for all that is older is not looked through; more rarely it is, since something always gets old before its end.
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

const uploadsBetween = 1000;
const uploadsBetweenAll = 10_000;
