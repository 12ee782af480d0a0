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

export function openFeed(
  { asked, services, source, inputs }: RunningBuild,
  contents: SmallContents,
): StageFeed {
  const { dialect, dockerfile } = asked;
  const { supports, service, store, clock, signal } = services;
  const early = supports.isInThisProcess
    ? noEarlyUploads
    : createEarlyUploads({ service, uploads: store.uploads, contents, signal });
  const whyLeftOut = specialFilesOf(dialect, supports);
  const ahead = createLookAhead({ ...source, dialect, dockerfile, early, inputs, whyLeftOut, clock, signal });
  return { early, ahead, stop: () => Promise.all([ahead.stop(), early.stop()]) };
}
