import type { RunningBuild } from "../job.ts";
import { createEarlyUploads, type EarlyUploads } from "./early-uploads.ts";
import { createLookAhead, type LookAhead } from "./look-ahead.ts";
import type { SmallContents } from "./small-contents.ts";

/** The parts of a stage that find, hash and send files in advance. */
export interface StageFeed {
  early: EarlyUploads;
  ahead: LookAhead;
  /** Resolves when nothing is being read or sent any more. */
  stop(): Promise<unknown>;
}

/** A feed for a service in this process, which reads files in place. */
const noEarlyUploads: EarlyUploads = {
  contents: undefined,
  offer() {},
  hashWhileSending: async () => undefined,
  markNeeded() {},
  markUncertain() {},
  has: () => false,
  finish: async () => ({ files: 0, sentBytes: 0, reused: 0 }),
  async stop() {},
};

export function openFeed(running: RunningBuild, contents: SmallContents): StageFeed {
  const { service, store } = running;
  const early =
    service.lendFiles === undefined
      ? createEarlyUploads({ ...running, uploads: store.uploads, contents })
      : noEarlyUploads;
  const ahead = createLookAhead({ ...running, early });
  return { early, ahead, stop: () => Promise.all([ahead.stop(), early.stop()]) };
}
