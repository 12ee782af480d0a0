import { BoughError } from "../../errors.ts";
import type { BuildJob } from "../job.ts";
import type { Staged } from "../staging/staged.ts";
import { nameOf } from "./open-archive.ts";
import { sendContents } from "./read-archive.ts";

/**
 * The ids, by SHA-256, of what archives have staged. All was sent as the archive was read; where the service has forgotten
 * some of it since, the archive is read again.
 */
export async function uploadArchives(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
  const { uploads } = build.store;
  const ids = new Map<string, string>();
  for (const entry of staged.values()) {
    if (entry.type !== "file" || entry.content.kind !== "archive" || ids.has(entry.sha256)) continue;
    const { archive, digest } = entry.content;
    if (uploads.get(entry.sha256) === undefined) await sendContents(archive, digest, build);
    const id = uploads.get(entry.sha256);
    if (id === undefined)
      throw new BoughError(`${nameOf(archive, build)} has changed since it was unpacked`, {
        hint: "Build again.",
      });
    ids.set(entry.sha256, id);
  }
  return ids;
}
