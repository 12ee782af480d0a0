import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { endBytes, fileHeader, padding } from "../../image/tar-header.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { quote } from "../../programs/quote.ts";
import type { InstanceFile } from "../../service/wire/file.ts";
import { sha256Of } from "../../sha256.ts";
import { streamOf, tap } from "../../streams.ts";
import { contentOf, entriesOf } from "../archives/read-archive.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { detectEviction } from "../operations/evicted-image.ts";
import { collectBetweenSteps, createArchiveCollector } from "../operations/gc.ts";
import { relativeEntries } from "../operations/image-entries.ts";
import type { ImageContent, StagedEntry, StagedFile } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";

/** The number of contents of a copy that are sent one by one, as they are read. */
export const maxSingleFiles = 1000;
/** If more files are missing, they are sent as one archive: a request for each would take far longer. */
const maxFetchedFiles = 100;

/** Staged files in one archive that the instance unpacks. */
interface PackedFiles {
  /** Paths of the staged files that are in it. */
  paths: ReadonlySet<string>;
  /** The absolute path at which the archive is placed. */
  path: string;
  file: InstanceFile;
}

type Packable = StagedFile & { content: ImageContent & { tree: string } };

/** The files of the archive from one directory of an image. With many files, fewer objects save noticeable memory. */
interface PackedTree {
  content: Packable["content"];
  /** Files by path in the image. */
  files: Map<string, { path: string; file: Packable }>;
  /** Further paths of a file, by its path in the image. */
  links: Map<string, string[]>;
}

/**
 * Packs the staged files of other images that the service lacks in one archive, with their owners and modes. Returns `undefined`
 * if there are few, or if the image has no `tar` to unpack it.
 */
export async function packImageFiles(stage: StageState, build: BuildJob): Promise<PackedFiles | undefined> {
  const { store, service } = build.services;
  collectBetweenSteps(stage.staged.size);
  const trees = new Map<string, PackedTree>();
  const paths = new Set<string>();
  for (const [path, entry] of stage.staged) {
    if (!isPackable(entry) || store.uploads.get(entry.sha256) !== undefined) continue;
    if (addTo(treeOf(entry, trees), path, entry)) paths.add(path);
  }
  if (paths.size <= maxFetchedFiles || !(await hasTar(stage, build.services))) return undefined;

  const key = keyOf(trees);
  const known = store.copies.archive(key);
  const found = known === undefined ? undefined : await service.findFile(known);
  const uuid = found ?? (await sendArchive(trees, key, build));
  const path = `/.bough-${key.slice(0, 16)}.tar`;
  return { paths, path, file: { uuid, uid: 0, gid: 0, mode: "0600" } };
}

/** Returns a script that needs no prelude. */
export function unpackScript(path: string): string {
  return `umask 022\ntar -xpf ${quote(path)} -C / || exit 1\nrm -f ${quote(path)} || exit 1\n`;
}

function isPackable(entry: StagedEntry): entry is Packable {
  return entry.type === "file" && entry.content.kind === "image" && entry.content.tree !== undefined;
}

function treeOf({ content }: Packable, trees: Map<string, PackedTree>): PackedTree {
  const key = `${content.image} ${content.tree}`;
  return trees.getOrInsertComputed(key, () => ({ content, files: new Map(), links: new Map() }));
}

/** Returns false for a file that is already there under another path and is not a hard link to it. */
function addTo({ files, links }: PackedTree, path: string, file: Packable): boolean {
  const own = { path, file };
  const first = files.getOrInsert(file.content.path, own);
  if (first === own) return true;
  if (file.inode === undefined || first.file.inode !== file.inode) return false;
  links.getOrInsert(file.content.path, []).push(path);
  return true;
}

async function hasTar({ layer }: StageState, { inspection }: BuildServices): Promise<boolean> {
  return (
    (await inspection.isFile(layer.image, "/bin/tar")) ||
    (await inspection.isFile(layer.image, "/usr/bin/tar"))
  );
}

function keyOf(trees: ReadonlyMap<string, PackedTree>): string {
  const hashes = [...trees.values()].map(({ files, links }) => {
    const hasher = new Bun.CryptoHasher("sha256");
    for (const from of [...files.keys()].sort()) {
      const { path, file } = files.get(from) ?? {};
      hasher.update(JSON.stringify([path, file?.sha256, file?.uid, file?.gid, file?.mode, links.get(from)]));
    }
    return hasher.digest("hex");
  });
  return sha256Of(hashes.sort().join());
}

async function sendArchive(
  trees: ReadonlyMap<string, PackedTree>,
  key: string,
  build: BuildJob,
): Promise<string> {
  let count = 0;
  let bytes = 0;
  for (const { files } of trees.values()) {
    count += files.size;
    for (const { file } of files.values()) bytes += file.size;
  }
  build.emit({ type: "uploading", files: count, bytes });
  collectBetweenSteps(count);
  const progress = (sentBytes: number) =>
    build.emit({ type: "upload-progress", files: 0, sentBytes, reused: 0 });
  const sent = await build.services.service.uploadStream(
    () => streamOf(writeArchive(trees, build.services)),
    {
      progress,
    },
  );
  build.services.store.copies.setArchive(key, sent.sha256);
  build.emit({ type: "uploaded", files: count, sentBytes: sent.size, reused: 0 });
  return sent.uuid;
}

/** Writes the contents of the images' archives, with each file at every path at which it is staged. */
async function* writeArchive(
  trees: ReadonlyMap<string, PackedTree>,
  services: BuildServices,
): AsyncGenerator<Uint8Array> {
  const collect = createArchiveCollector();
  for (const { content, files, links } of trees.values()) {
    const { image, tree, evictable } = content;
    const archive = `the archive of ${tree} of image ${image}`;
    const changed = (path: string) =>
      new BoughError(
        `${archive} has changed at ${path} since it was first read, although images are immutable`,
      );
    const open = () => services.service.openArchive(image, tree);
    const stream = await detectEviction(evictable, services, open);
    const seen = new Set<string>();
    const list = () => services.service.listFiles(image, tree);
    const read = (chunks: AsyncIterable<Uint8Array>) => relativeEntries(readTar(chunks, archive), tree, list);
    for await (const entry of entriesOf(stream, read)) {
      services.signal.throwIfAborted();
      collect();
      const from = posix.join(tree, entry.name);
      const wanted = files.get(from);
      if (wanted === undefined || seen.has(from)) continue;
      seen.add(wanted.file.content.path);
      const { path, file } = wanted;
      if (entry.type !== "file" || entry.size !== file.size) throw changed(from);
      yield* writeFile(path, file, entry, () => changed(from));
      const date = new Date(entry.modified * 1000);
      for (const other of links.get(from) ?? [])
        yield fileHeader({ ...file, path: other.slice(1), link: path.slice(1) }, date);
    }
    for (const from of files.keys()) if (!seen.has(from)) throw changed(from);
  }
  yield new Uint8Array(endBytes);
}

async function* writeFile(
  path: string,
  file: Packable,
  entry: TarEntry,
  changed: () => BoughError,
): AsyncGenerator<Uint8Array> {
  yield fileHeader({ ...file, path: path.slice(1) }, new Date(entry.modified * 1000));
  const hasher = new Bun.CryptoHasher("sha256");
  yield* tap(contentOf(entry), (chunk) => hasher.update(chunk));
  if (hasher.digest("hex") !== file.sha256) throw changed();
  if (padding(file.size) > 0) yield new Uint8Array(padding(file.size));
}
