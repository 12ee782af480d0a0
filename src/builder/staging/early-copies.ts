import { openToHash } from "../../context/hashing/hash-file.ts";
import type { AheadCopy, CopyAhead } from "../../service/wire/file.ts";
import type { EarlyUploads } from "./early-uploads.ts";
import { Need } from "./need.ts";

/**
 * The counterpart of early uploads for a service in this process: it reads files in place, so that nothing is sent. Only a large
 * file that is certainly needed is copied while it is hashed.
 */
export function createEarlyCopies(copyAhead: CopyAhead, signal: AbortSignal): EarlyUploads {
  const stopping = new AbortController();
  const either = AbortSignal.any([signal, stopping.signal]);
  const need = new Need();
  const copies: AheadCopy[] = [];
  let copying: Promise<AheadCopy> | undefined;

  return {
    contents: undefined,
    offer() {},
    async hashOnTheWay(file, onBytes, decided) {
      if (!(await need.settle(decided)) || copying !== undefined || either.aborted) return undefined;
      copying = copyAhead({ size: file.size, open: () => openToHash(file) }, { signal: either, onBytes });
      try {
        const copy = await copying;
        copies.push(copy);
        return copy.sha256;
      } finally {
        copying = undefined;
      }
    },
    markNeeded: () => need.declare(),
    markUncertain: () => need.withdraw(),
    has: () => false,
    finish: async () => ({ files: 0, sentBytes: 0, reused: 0 }),
    async stop() {
      stopping.abort();
      await copying?.catch(() => undefined);
      for (const copy of copies) copy.drop();
    },
  };
}
