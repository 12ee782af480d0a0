import { BoughError } from "../../errors.ts";
import type { UploadProgress } from "../../service/files/upload.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { BuildJob } from "../job.ts";
import { detectEviction } from "../operations/evicted-image.ts";
import { collectGarbage, createUploadCollector } from "../operations/gc.ts";
import { downloadToService } from "../remote-files/download.ts";
import { withRetries } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import type { ImageContent, Staged, StagedFile } from "../state/staged.ts";
import { localFiles } from "./request-fields.ts";

/**
 * Makes sure that the service has the content of every staged file; returns the files' ids by SHA-256. Contents sent before the
 * step began count as sent for it.
 */
export async function uploadStaged(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
  const known = await uploadImageFiles(staged, build);
  if (staged.values().some((entry) => entry.type === "file" && isUnpacked(entry))) {
    const { uploadArchives } = await import("../archives/upload-archives.ts");
    for (const [sha256, id] of await uploadArchives(staged, build)) known.set(sha256, id);
  }
  const { local, begun, bytes } = await divide(staged, known, build);
  const files = begun.size + local.size;
  if (files === 0) return known;

  build.emit({ type: "uploading", files, bytes });
  const ids = await sendLocal(local, begun, build);
  for (const [sha256, id] of known) ids.set(sha256, id);
  collectGarbage(staged.size);
  return ids;
}

type FilesByHash = Map<string, StagedFile>;

/** Finds the contents that are still to be sent, or are being sent. Adds all others to `known`, and sends those that are not files. */
async function divide(
  staged: Staged,
  known: Map<string, string>,
  build: BuildJob,
): Promise<{ local: FilesByHash; begun: FilesByHash; bytes: number }> {
  const [local, begun]: [FilesByHash, FilesByHash] = [new Map(), new Map()];
  let bytes = 0;
  for (const entry of staged.values()) {
    if (entry.type !== "file") continue;
    const { sha256, size, content } = entry;
    if (known.has(sha256) || local.has(sha256) || begun.has(sha256)) continue;
    const isBegun = build.eagerUploads.has(sha256);
    const id = isBegun ? undefined : build.services.store.uploads.get(sha256);
    if (id !== undefined) known.set(sha256, id);
    else if (content.kind === "local") {
      (isBegun ? begun : local).set(sha256, entry);
      bytes += size;
    } else known.set(sha256, await sendContent(entry, build));
  }
  return { local, begun, bytes };
}

/** Sends local files, and waits for those that are being sent since before the step. Returns ids by SHA-256. */
async function sendLocal(
  local: FilesByHash,
  begun: FilesByHash,
  build: BuildJob,
): Promise<Map<string, string>> {
  const nothing: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
  let [before, now] = [nothing, nothing];
  const collect = createUploadCollector();
  const total = () => sum(before, now);
  const report = () => build.emit({ type: "upload-progress", ...total() });
  const send = (entries: FilesByHash) => {
    const done = now;
    return build.services.service.uploadFiles(
      localFiles(entries.values(), build.eagerUploads.contents),
      (sent) => {
        now = sum(done, sent);
        collect(now.files);
        report();
      },
    );
  };
  const finished = build.eagerUploads.finish({ begun: begun.keys(), rest: local }, (done) => {
    before = done;
    report();
  });
  const ids = await send(local).finally(async () => {
    before = await finished;
  });
  const again: FilesByHash = new Map();
  for (const [sha256, entry] of begun) {
    const id = build.services.store.uploads.get(sha256);
    if (id === undefined) again.set(sha256, entry);
    else ids.set(sha256, id);
  }
  // What could not be sent before: if it fails again, the step gets the error.
  if (again.size > 0) for (const [sha256, id] of await send(again)) ids.set(sha256, id);
  build.emit({ type: "uploaded", ...total() });
  return ids;
}

function sum(one: UploadProgress, other: UploadProgress): UploadProgress {
  return {
    files: one.files + other.files,
    sentBytes: one.sentBytes + other.sentBytes,
    reused: one.reused + other.reused,
  };
}

function isUnpacked({ content: { kind } }: StagedFile): boolean {
  return kind === "archive" || kind === "repository";
}

/** Sends a content that is not a file of the context: a here-document, or a URL whose upload the service has lost. */
async function sendContent({ content, sha256 }: StagedFile, build: BuildJob): Promise<string> {
  switch (content.kind) {
    case "text": {
      const text = new Blob([content.text]);
      const body = () => text.stream();
      const send = async () =>
        (await build.services.service.uploadStream(body, { contentLength: text.size })).uuid;
      const uuid = await build.services.service.sendOnce(sha256, send);
      build.services.store.uploads.flush();
      return uuid;
    }
    case "url":
      return (await downloadToService(content.url, { sha256 }, build)).uuid;
    case "archive":
    case "repository":
      throw new Error("what archives and repositories hold is uploaded together");
    case "image":
      throw new Error("files of images are uploaded together");
    case "local":
      throw new Error("local files are uploaded together");
  }
}

const maxConcurrent = 4;

/**
 * Returns the upload ids, by SHA-256, of staged files of other images. Most are known from staging. Those that the service has
 * forgotten since are fetched from their image again.
 */
async function uploadImageFiles(staged: Staged, build: BuildJob): Promise<Map<string, string>> {
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
          return found ?? (await detectEviction(content.evictable, build.services, fetch));
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
