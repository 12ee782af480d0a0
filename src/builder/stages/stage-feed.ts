import type { EarlyUploads, LookAhead, SmallContents } from "../feed.ts";
import type { RunningBuild } from "../job.ts";
import { createEarlyUploads, noEarlyUploads } from "../staging/early-uploads.ts";
import { specialFilesOf } from "../staging/special-files.ts";
import { createLookAhead } from "./look-ahead.ts";

/** The parts of a stage that find, hash and send files in advance. */
export interface StageFeed {
  early: EarlyUploads;
  ahead: LookAhead;
  /** Resolves when nothing is being read or sent any more. */
  stop(): Promise<unknown>;
}

export function openFeed(running: RunningBuild, contents: SmallContents): StageFeed {
  const { supports, store } = running;
  const early = supports.isInThisProcess
    ? noEarlyUploads
    : createEarlyUploads({ ...running, uploads: store.uploads, contents });
  const ahead = createLookAhead({ ...running, early, whyLeftOut: specialFilesOf(running) });
  return { early, ahead, stop: () => Promise.all([ahead.stop(), early.stop()]) };
}
