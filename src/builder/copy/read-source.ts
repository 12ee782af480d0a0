import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import type { ResolvedSource } from "../../image/copy-sources.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import type { ImageService } from "../../service/service.ts";
import type { CopiedEntry, CopiedFile, CopiedSource } from "../../store/copies.ts";
import { contentOf, entriesOf } from "../archives/read-archive.ts";
import type { BuildJob } from "../job.ts";
import type { ImageContents } from "../operations/image-contents.ts";
import { withRetries } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import { relativeEntries } from "../staging/archive-root.ts";
import { parentDirectories } from "../state/path-in-image.ts";
import { type ArchivedEntry, checkArchive } from "./archive-entries.ts";
import type { ListedTree } from "./image-tree.ts";

/** The state of reading the sources of one instruction. */
export interface Reading {
  image: string;
  tree: ListedTree;
  contents: ImageContents;
  /** Pipes and sockets that were found. */
  skipped: string[];
}

export async function readFile(
  { path, name }: Pick<ResolvedSource, "path" | "name">,
  { image, tree, contents }: Reading,
  build: BuildJob,
): Promise<CopiedSource> {
  const listed = await tree.describe(path);
  if (listed === undefined) throw new Error(`${path} has been looked up`);
  const { size, uid, gid, mode } = listed;
  // An upload that was refused has used up the content.
  const sha256 = await withRetries(accessForAdd(build), true, async () =>
    contents.take(await openExactly(build.services.service, image, path, size), size),
  );
  const file: CopiedFile = { type: "file", path: "", mode: mode ?? 0o644, uid, gid, sha256, size };
  return { path, name, type: "file", entries: [file] };
}

/**
 * Reads a directory as one archive: with many files, a request for each file or directory takes far longer. `isExcluded` gets
 * paths relative to the directory.
 */
export async function readDirectory(
  { path: directory, name }: Pick<ResolvedSource, "path" | "name">,
  isExcluded: (path: string) => boolean,
  { image, contents, skipped }: Reading,
  { services, emit }: BuildJob,
): Promise<CopiedSource> {
  const { service } = services;
  emit({ type: "downloading", url: `${directory} of image ${image}` });
  const archive = `the archive of ${directory} of image ${image}`;
  const stream = await service.openArchive(image, directory);
  const entries: CopiedEntry[] = [];
  /** Files by path: further links to a file refer to the first. */
  const files = new Map<string, CopiedFile>();
  const unread = new Map<string, TarEntry>();
  /** Excluded directories, until something in them is included. */
  const held = new Map<string, CopiedEntry>();

  async function readEntry({ path, entry, original }: ArchivedEntry): Promise<CopiedFile> {
    const first = files.get(original ?? "");
    if (first !== undefined) return { ...first, path, original: first.original ?? first.path };
    const left = unread.get(original ?? "");
    const { mode, uid, gid, size } = left ?? entry;
    const from = posix.join(directory, original ?? path);
    const content = left === undefined ? contentOf(entry) : await openExactly(service, image, from, size);
    const sha256 = await contents.take(content, size);
    const file: CopiedFile = { type: "file", path, mode, uid, gid, sha256, size };
    files.set(original ?? path, file);
    return file;
  }

  const list = () => service.listFiles(image, directory);
  const archived = (chunks: AsyncIterable<Uint8Array>) =>
    checkArchive(relativeEntries(readTar(chunks, archive), directory, list), archive);
  for await (const next of entriesOf(stream, archived)) {
    services.signal.throwIfAborted();
    const { path, entry } = next;
    const { type, mode, uid, gid } = entry;
    if (isExcluded(path)) {
      if (type === "file") unread.set(path, entry);
      if (type === "directory") held.set(path, { type, path, mode, uid, gid });
      continue;
    }
    for (const above of held.size === 0 ? [] : parentDirectories(path)) {
      const excluded = held.get(above);
      if (excluded !== undefined) entries.push(excluded);
      held.delete(above);
    }
    if (type === "directory") entries.push({ type, path, mode, uid, gid });
    else if (type === "symlink") entries.push({ type, path, target: entry.target, uid, gid });
    else if (type === "other") skipped.push(posix.join(directory, path));
    else entries.push(await readEntry(next));
  }
  return { path: directory, name, type: "directory", entries };
}

/** Opens a file of the image. Its content must have the size that the service lists. */
async function openExactly(
  service: Pick<ImageService, "openFile">,
  image: string,
  path: string,
  size: number,
): Promise<AsyncGenerator<Uint8Array>> {
  const content = await service.openFile(image, path);
  const fault = (how: string) => new BoughError(`${path} of image ${image}: the service ${how}`);
  if (content === undefined) throw fault("lists it as a file, but does not return it");
  return exactly(content, size, () => fault(`lists ${size} bytes, but returns a different number`));
}

async function* exactly(
  content: ReadableStream<Uint8Array>,
  size: number,
  fault: () => BoughError,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.byteLength;
    if (bytes > size) throw fault();
    yield chunk;
  }
  if (bytes < size) throw fault();
}
