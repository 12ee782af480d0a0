import { BoughError } from "../../errors.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { BuildJob } from "../job.ts";
import { detectLoss } from "../operations/missing-image.ts";
import { withRetries } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import type { ImageContent, Staged } from "../state/staged.ts";

const maxConcurrent = 4;

/**
 * Returns the upload ids, by SHA-256, of staged files of other images. Most are known from staging. Those that the service has
 * forgotten since are fetched from their image again.
 */
export async function uploadImageFiles(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
  const { service, store } = build.services;
  const { emit } = build;
  const ids = new Map<string, string>();
  const missing = new Map<string, { content: ImageContent; size: number }>();
  for (const entry of staged.values()) {
    if (entry.type !== "file" || entry.content.kind !== "image") continue;
    const { content, sha256, size } = entry;
    const id = store.uploads.get(sha256);
    if (id !== undefined) ids.set(sha256, id);
    else missing.set(sha256, { content, size });
  }
  if (missing.size === 0) return ids;

  const done = { files: 0, sentBytes: 0, reused: 0 };
  const bytes = missing.values().reduce((sum, { size }) => sum + size, 0);
  emit({ type: "uploading", files: missing.size, bytes });
  try {
    await forEachConcurrently(
      missing,
      maxConcurrent,
      build.services.signal,
      async ([sha256, { content, size }]) => {
        let isSent = false;
        const fetch = () => fetchAgain(content, { sha256, size }, build);
        const send = async () => {
          const found = await service.findFile(sha256);
          isSent = found === undefined;
          return found ?? (await detectLoss(content.losable, build.services, fetch));
        };
        ids.set(sha256, await service.sendOnce(sha256, send));
        done.files += 1;
        if (isSent) done.sentBytes += size;
        else done.reused += 1;
        emit({ type: "upload-progress", ...done });
      },
    );
  } finally {
    store.uploads.flush();
  }
  emit({ type: "uploaded", ...done });
  return ids;
}

async function fetchAgain(
  { image, path }: ImageContent,
  { sha256, size }: { sha256: string; size: number },
  build: BuildJob,
): Promise<string> {
  const { service } = build.services;
  const changed = () =>
    new BoughError(
      `${path} of image ${image} has changed since it was first read, although images are immutable`,
    );
  const inspect = (actual: string) => {
    if (actual !== sha256) throw changed();
  };
  return await withRetries(accessForAdd(build), true, async () => {
    const body = await service.openFile(image, path);
    if (body === undefined) throw changed();
    return (await service.uploadStream(body, { contentLength: size, inspect })).uuid;
  });
}
