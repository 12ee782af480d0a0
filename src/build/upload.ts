import type { LocalFile } from "../service/service.ts";
import { download } from "./download.ts";
import type { BuildJob } from "./job.ts";
import type { Staged, StagedFile } from "./staged.ts";

/** Makes sure that the service has the content of every staged file; answers the files' ids by SHA-256. */
export async function uploadStaged(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  const local: LocalFile[] = [];
  for (const entry of staged.values()) {
    if (entry.type !== "file") continue;
    const known = ids.get(entry.sha256) ?? build.store.uploads.get(entry.sha256);
    if (known !== undefined) ids.set(entry.sha256, known);
    else if (entry.content.kind === "local")
      local.push({ ...entry, absolutePath: entry.content.absolutePath });
    else ids.set(entry.sha256, await sendContent(entry, build));
  }
  if (local.length === 0) return ids;

  const contents = new Map(local.map((file) => [file.sha256, file.size]));
  const bytes = [...contents.values()].reduce((sum, size) => sum + size, 0);
  build.emit({ type: "uploading", files: contents.size, bytes });
  let last = { files: 0, sentBytes: 0, reused: 0 };
  const uploaded = await build.service.uploadFiles(local, (progress) => {
    last = progress;
    build.emit({ type: "upload-progress", ...progress });
  });
  build.emit({ type: "uploaded", ...last });
  for (const [sha256, id] of uploaded) ids.set(sha256, id);
  return ids;
}

/** Contents that are no file of the context: a here-document, or a URL whose upload the service has forgotten. */
async function sendContent({ content, sha256 }: StagedFile, build: BuildJob): Promise<string> {
  switch (content.kind) {
    case "text": {
      const { uuid } = await build.service.uploadStream(new Blob([content.text]).stream());
      build.store.uploads.set(sha256, uuid);
      build.store.uploads.flush();
      return uuid;
    }
    case "url":
      return (await download(content.url, sha256, build)).uuid;
    case "local":
      throw new Error("local files are uploaded together");
  }
}
