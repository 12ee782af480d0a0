import { BoughError } from "../../errors.ts";
import type { BuildJob } from "../job.ts";
import type { Staged, UnpackedContent } from "../state/staged.ts";
import { archiveName } from "./open-archive.ts";
import { sendContents } from "./read-archive.ts";

/**
 * Returns the upload ids, by SHA-256, of files staged from archives and repositories. All were sent when they were read. If the
 * service has forgotten some since, the source is read again.
 */
export async function uploadArchives(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
  const { uploads } = build.services.store;
  const ids = new Map<string, string>();
  for (const entry of staged.values()) {
    if (entry.type !== "file" || ids.has(entry.sha256)) continue;
    const { content, sha256 } = entry;
    if (content.kind !== "archive" && content.kind !== "repository") continue;
    if (uploads.get(sha256) === undefined) await sendAgain(content, build);
    const id = uploads.get(sha256);
    if (id === undefined) {
      const name =
        content.kind === "archive"
          ? archiveName(content.archive, build.asked.buildArgs)
          : content.repository.shown;
      throw new BoughError(`${name} has changed since it was unpacked`, { hint: "Build again." });
    }
    ids.set(sha256, id);
  }
  return ids;
}

async function sendAgain(content: UnpackedContent, build: BuildJob): Promise<void> {
  if (content.kind === "archive") await sendContents(content.archive, content.digest, build);
  else {
    const { sendRepository } = await import("../repositories/read-repository.ts");
    await sendRepository(content.repository, build);
  }
}
