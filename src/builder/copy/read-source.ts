import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { isId, maxEntries, maxPathLength } from "../../image/archive-limits.ts";
import type { ImageTree, ResolvedSource } from "../../image/copy-sources.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import type { ImageFile } from "../../service/images/image-file.ts";
import type { ImageService } from "../../service/service.ts";
import type { CopiedEntry, CopiedFile, CopiedSource } from "../../store/copies.ts";
import { contentOf, entriesOf } from "../archives/read-archive.ts";
import type { BuildJob } from "../job.ts";
import type { ContentUploads } from "../operations/content-uploads.ts";
import { relativeEntries } from "../operations/image-entries.ts";
import { withRetries } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import { parentDirectories } from "../state/path-in-image.ts";

/** The state while the sources of one instruction are read. */
export interface Reading {
  image: string;
  tree: ListedTree;
  contents: ContentUploads;
  /** Pipes and sockets that were found. */
  skipped: string[];
}

export async function readImageFile(
  { path, name }: Pick<ResolvedSource, "path" | "name">,
  { image, tree, contents }: Reading,
  build: BuildJob,
): Promise<CopiedSource> {
  const listed = await tree.describe(path);
  if (listed === undefined) throw new Error(`${path} has been looked up`);
  const { size, uid, gid, mode } = listed;
  // An upload that was refused has used up the content.
  const sha256 = await withRetries(accessForAdd(build), true, async () =>
    contents.add(await openExactly(build.services.service, image, path, size), size),
  );
  const file: CopiedFile = { type: "file", path: "", mode: mode ?? 0o644, uid, gid, sha256, size };
  return { path, name, type: "file", entries: [file] };
}

/**
 * Reads a directory as one archive: with many files, a request for each file or directory takes far longer. `isExcluded` gets
 * paths relative to the directory.
 */
export async function readImageDirectory(
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
    const sha256 = await contents.add(content, size);
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

/** An entry of an image's archive whose name has been checked. */
interface ArchivedEntry {
  /** Relative to the archive's directory; never empty. */
  path: string;
  entry: TarEntry;
  /** The path of the file that a hard link refers to, which came before it. */
  original: string | undefined;
}

const maxBytes = 2 ** 42;

/**
 * Checks the entries of a directory's archive, since the service is not trusted. Throws for names that lead elsewhere or through
 * a link, duplicate names, devices, and an endless archive. `archive` names it in the message.
 */
export async function* checkArchive(
  entries: AsyncIterable<TarEntry>,
  archive: string,
): AsyncGenerator<ArchivedEntry> {
  /** The type at each path so far. A directory may be known only by what is in it. */
  const seen = new Map<string, TarEntry["type"] | "implied">();
  const refuse = (how: string) =>
    new BoughError(`${archive} ${how}`, {
      hint: "The service must not send such an archive: nothing was copied from it.",
    });
  let count = 0;
  let bytes = 0;

  const relativePath = (name: string) => {
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    const isElsewhere = name.startsWith("/") || parts.includes("..") || name.includes("\0");
    if (isElsewhere) throw refuse(`contains a name that leads out of it: ${JSON.stringify(name)}`);
    if (name.length > maxPathLength) throw refuse(`contains a name of ${name.length} characters`);
    // The decoder's replacement for bytes that are not UTF-8.
    if (name.includes("\ufffd")) throw refuse(`contains a name that is not UTF-8: ${JSON.stringify(name)}`);
    return parts.join("/");
  };
  const enter = (path: string) => {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const above = path.slice(0, end);
      const type = seen.get(above);
      if (type === "directory" || type === "implied") return;
      if (type !== undefined) throw refuse(`contains ${path}, but ${above} is not a directory`);
      seen.set(above, "implied");
    }
  };

  for await (const entry of entries) {
    count += 1;
    bytes += entry.size;
    if (count > maxEntries || bytes > maxBytes)
      throw refuse(`has more than ${maxEntries} entries or ${maxBytes / 2 ** 40} TiB`);
    const path = relativePath(entry.name);
    if (path === "") {
      if (entry.type !== "directory") throw refuse(`contains a ${entry.type} without a name`);
      continue;
    }
    enter(path);
    const before = seen.get(path);
    if (before !== undefined && !(before === "implied" && entry.type === "directory"))
      throw refuse(`contains ${path} twice`);
    if (!isId(entry.uid) || !isId(entry.gid)) throw refuse(`has an invalid owner for ${path}`);
    if (entry.isDevice) throw refuse(`contains a device: ${path}`);
    const original = entry.type === "hardlink" ? relativePath(entry.target) : undefined;
    if (original !== undefined && seen.get(original) !== "file")
      throw refuse(`contains ${path} as a link to ${entry.target}, which is not a file in the archive`);
    seen.set(path, entry.type);
    yield { path, entry, original };
  }
}

/** An image's tree, as a service lists it. Each directory is listed once. */
interface ListedTree extends ImageTree {
  /** Returns the entry for a path in the list of its directory; `undefined` for the root, too. */
  describe(path: string): Promise<ImageFile | undefined>;
  /** Lists the directories on the way to a path at once, where looking it up would list one after the other. */
  prepare(path: string): void;
}

export function createListedTree(image: string, service: Pick<ImageService, "listFiles">): ListedTree {
  const lists = new Map<string, Promise<ReadonlyMap<string, ImageFile>>>();

  function list(directory: string): Promise<ReadonlyMap<string, ImageFile>> {
    return lists.getOrInsertComputed(directory, () =>
      service.listFiles(image, directory).then((files) => byName(files, directory, image)),
    );
  }

  const describe = async (path: string) => (await list(posix.dirname(path))).get(posix.basename(path));
  return {
    describe,
    prepare(path) {
      const names = path.split("/").slice(1, -1);
      for (const count of [...names.keys(), names.length])
        list(`/${names.slice(0, count).join("/")}`).catch(() => {
          // The directory may not exist, if a link leads to the path. A later use of this list reports the error.
        });
    },
    async lookUp(path) {
      if (path === "/") return { type: "directory" };
      const file = await describe(path);
      if (file === undefined) return undefined;
      return file.type === "symlink" ? { type: "symlink", target: file.target ?? "" } : { type: file.type };
    },
    list: async (directory) => [...(await list(directory)).keys()],
  };
}

/** Checks names, since the service is not trusted: one that leads elsewhere or occurs twice would be copied to another place. */
function byName(
  files: readonly ImageFile[],
  directory: string,
  image: string,
): ReadonlyMap<string, ImageFile> {
  const named = new Map<string, ImageFile>();
  for (const file of files) {
    const { name } = file;
    if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
      throw hostile(`lists ${JSON.stringify(name)} in ${directory}`, image);
    if (named.has(name)) throw hostile(`lists ${JSON.stringify(name)} twice in ${directory}`, image);
    named.set(name, file);
  }
  return named;
}

function hostile(how: string, image: string): BoughError {
  return new BoughError(`the service ${how} of image ${image}`, { hint: "Nothing is copied from it." });
}
