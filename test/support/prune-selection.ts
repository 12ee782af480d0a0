import type { PruneSelection } from "../../src/engine/prune/selection.ts";

/** A prune that keeps the current images of sessions, and removes records of operations of any age. */
export function keeping(...images: string[]): PruneSelection {
  const use = { session: "k", usedAt: 0, isCurrent: true };
  return {
    uses: new Map(images.map((image) => [image, use])),
    ...{ all: false, sessions: false, logsBefore: Number.POSITIVE_INFINITY },
  };
}
