import type { RunningBuild } from "../job.ts";
import { createEarlyUploads, type EarlyUploads } from "./early-uploads.ts";
import { createLookAhead, type LookAhead } from "./look-ahead.ts";

/** What a stage finds, hashes and sends before it is needed. */
export interface StageFeed {
  early: EarlyUploads;
  ahead: LookAhead;
  /** Resolves when nothing is read or sent any more. */
  stop(): Promise<unknown>;
}

export function openFeed(running: RunningBuild): StageFeed {
  const early = createEarlyUploads({ ...running, uploads: running.store.uploads });
  const ahead = createLookAhead({ ...running, early });
  return { early, ahead, stop: () => Promise.all([ahead.stop(), early.stop()]) };
}
