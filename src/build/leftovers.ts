import { edenGC } from "bun:jsc";

/**
 * A step over a large context leaves several times as much behind as it keeps, and the collector would let that pile up.
 * Smaller ones are not worth the pause, of some 50 ms.
 */
export function collectLeftovers(files: number): void {
  if (files >= manyFiles) Bun.gc(true);
}

const manyFiles = 50_000;

/** What the latest uploads have left behind, some 10 KiB each: in a few ms, for all that is kept is not looked through. */
export function collectUploads(): void {
  edenGC();
}

/** Uploads after which to do so again. */
export const uploadsBetween = 1000;
