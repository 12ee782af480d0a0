import { edenGC } from "bun:jsc";

/**
 * A step over a large context leaves several times as much behind as it keeps, and the collector would let that pile up.
 * Smaller ones are not worth the pause, of some 50 ms.
 */
export function collectLeftovers(files: number): void {
  if (files >= manyFiles) Bun.gc(true);
}

const manyFiles = 50_000;

/**
 * What the latest uploads have left behind, some 10 KiB each: in a few ms, for all that is older is not looked through.
 * Now and then it is: something always gets old before its end.
 */
export function collectUploads(files: number): void {
  if (files % uploadsBetweenAll === 0) Bun.gc(true);
  else edenGC();
}

/** Uploads after which to do so again. */
export const uploadsBetween = 1000;
const uploadsBetweenAll = 10_000;
