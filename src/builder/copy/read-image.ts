import { posix } from "node:path";
import { parseExcludeFlags } from "../../context/patterns/ignore.ts";
import { decidePath, isMatch, type Rule } from "../../context/patterns/rules.ts";
import { BoughError } from "../../errors.ts";
import { type CopySource, resolveCopySources } from "../../image/copy-sources.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { ImageService } from "../../service/service.ts";
import type { CopiedEntry, CopiedFile, CopiedSource } from "../../store/copies.ts";
import type { BuildJob } from "../job.ts";
import { maxSingleFiles } from "../staging/image-archive.ts";
import { contentOf } from "../staging/tar-content.ts";
import { type ArchivedEntry, checkArchive } from "./archive-entries.ts";
import { createImageContents, type ImageContents } from "./image-contents.ts";
import { createListedTree, type ListedTree } from "./image-tree.ts";
import { parentDirectories } from "./made-directories.ts";
import type { CopyWords } from "./words.ts";

/**
 * What the sources of a `COPY --from` come to in an image of the service, their contents uploaded on the way. What has
 * been read once is remembered: then nothing is asked, and no byte moves.
 *
 * @throws BoughError for sources that are not there, for a service that can't show what an image holds, and for answers
 * that can't be true
 */
export async function readFromImage(
  { paths, exclude }: Pick<CopyWords, "paths" | "exclude">,
  image: string,
  line: number,
  build: BuildJob,
): Promise<readonly CopiedSource[]> {
  const { copies } = build.store;
  const words = JSON.stringify({ paths, exclude });
  const known = copies.get(image, words);
  if (known !== undefined) return known;

  const rules = parseExcludeFlags(exclude);
  await requireInspect(image, build);
  const tree = createListedTree(image, build.service);
  const found = await resolveCopySources(paths, tree);
  const skipped: string[] = [];
  const read: (CopiedSource | undefined)[] = [];
  const contents = createImageContents(build, maxSingleFiles);
  const work = async ([index, source]: [number, CopySource]) => {
    if (source.type === "directory")
      read[index] = await readDirectory(source, rules, { image, contents, skipped }, build);
    else if (source.type === "file") read[index] = await readFile(source, tree, { image, contents }, build);
    else skipped.push(source.path);
  };
  await forEachConcurrently(found.entries(), maxConcurrentSources, build.signal, work);
  const done = await contents.finish();
  if (done.files > 0) build.emit({ type: "uploaded", ...done });
  if (skipped.length > 0) build.emit({ type: "warning", message: skippedMessage(skipped), line });
  const sources = read.filter((source) => source !== undefined);
  copies.set(image, words, sources);
  return sources;
}

/** Each has its own connection, and some MiB on their way. */
const maxConcurrentSources = 4;

async function requireInspect(image: string, { facts }: BuildJob): Promise<void> {
  if (await facts.isDirectory(image, "/")) return;
  throw new BoughError(
    "the service can't show what an image holds, which COPY --from needs: it has no GET /v1/inspect/{image_uuid}/list",
    { hint: "Build on the embedded engine, or on a service that has the call." },
  );
}

interface Reading {
  image: string;
  contents: ImageContents;
}

async function readFile(
  { path, name }: CopySource,
  tree: ListedTree,
  { image, contents }: Reading,
  { service }: BuildJob,
): Promise<CopiedSource> {
  const listed = await tree.describe(path);
  if (listed === undefined) throw new Error(`${path} has been looked up`);
  const { size, uid, gid, mode } = listed;
  const sha256 = await contents.take(await openExactly(service, image, path, size), size);
  const file: CopiedFile = { type: "file", path: "", mode: mode ?? 0o644, uid, gid, sha256, size };
  return { path, name, type: "file", entries: [file] };
}

/** One archive: asking for each file, or only listing each directory, takes far longer where there are many. */
async function readDirectory(
  { path: directory, name }: CopySource,
  rules: readonly Rule[],
  { image, contents, skipped }: Reading & { skipped: string[] },
  { service, signal, emit }: BuildJob,
): Promise<CopiedSource> {
  emit({ type: "downloading", url: `${directory} of image ${image}` });
  const archive = `the archive of ${directory} of image ${image}`;
  const stream = await service.openArchive(image, directory);
  const entries: CopiedEntry[] = [];
  /** By path: further links to a file name the first one. */
  const files = new Map<string, CopiedFile>();
  const unread = new Map<string, TarEntry>();
  /** Excluded directories, until something in them is not. */
  const held = new Map<string, CopiedEntry>();

  async function readFile({ path, entry, original }: ArchivedEntry): Promise<CopiedFile> {
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

  for await (const archived of checkArchive(readTar(stream, archive), archive)) {
    signal.throwIfAborted();
    const { path, entry } = archived;
    const { type, mode, uid, gid } = entry;
    const isExcluded = rules.length > 0 && isMatch(decidePath(rules, path));
    if (isExcluded) {
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
    else entries.push(await readFile(archived));
  }
  return { path: directory, name, type: "directory", entries };
}

/** The service lists the file with this size; what it gives has to have it. */
async function openExactly(
  service: Pick<ImageService, "openFile">,
  image: string,
  path: string,
  size: number,
): Promise<AsyncGenerator<Uint8Array>> {
  const content = await service.openFile(image, path);
  const fault = (how: string) => new BoughError(`${path} of image ${image}: the service ${how}`);
  if (content === undefined) throw fault("lists it as a file, and does not give it");
  return exactly(content, size, () => fault(`lists ${size} bytes, and gives others`));
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

function skippedMessage(paths: readonly string[]): string {
  const [first = "", ...others] = paths;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `pipes and sockets are not copied: ${first}${more}`;
}
