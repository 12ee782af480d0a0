import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { padding } from "../../image/tar-header.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { endBytes, fileHeader } from "../../image/tar-writer.ts";
import type { InstanceFile } from "../../service/types.ts";
import { detectLoss } from "../cache/missing-image.ts";
import { quote } from "../commands/command.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { ImageContent, StagedEntry, StagedFile } from "./staged.ts";
import { contentOf, entriesOf, streamOf } from "./tar-content.ts";

/** So many contents of a copy go to the service one by one, as they are read. */
export const maxSingleFiles = 1000;
/** More that it does not have go as one archive: they are fetched anew, and requests for each would take far longer. */
const maxFetchedFiles = 100;

/** Staged files in one archive that the instance unpacks. */
export interface PackedFiles {
  /** Of the staged files that are in it. */
  paths: ReadonlySet<string>;
  /** Where the archive is put for that, absolute. */
  path: string;
  file: InstanceFile;
}

type Packable = StagedFile & { content: ImageContent & { tree: string } };

/**
 * One archive of the staged files of other images that the service does not have yet, with their owners and modes.
 * `undefined` where they are few, or where the image has no `tar` to unpack it.
 */
export async function packImageFiles(stage: StageState, build: BuildJob): Promise<PackedFiles | undefined> {
  const { store, service } = build;
  const files = new Map<string, Packable>();
  const firsts = new Map<string, Packable>();
  for (const [path, entry] of stage.staged) {
    if (!isPackable(entry) || store.uploads.get(entry.sha256) !== undefined) continue;
    const from = `${entry.content.image} ${entry.content.path}`;
    const first = firsts.get(from) ?? entry;
    firsts.set(from, first);
    if (first === entry || isSameFile(first, entry)) files.set(path, entry);
  }
  if (files.size <= maxFetchedFiles || !(await hasTar(stage, build))) return undefined;

  const key = keyOf(files);
  const known = store.copies.archive(key);
  const found = known === undefined ? undefined : await service.findFile(known);
  const uuid = found ?? (await sendArchive(files, key, build));
  const path = `/.bough-${key.slice(0, 16)}.tar`;
  return { paths: new Set(files.keys()), path, file: { uuid, uid: 0, gid: 0, mode: "0600" } };
}

/** Whole by itself. */
export function unpackScript(path: string): string {
  return `umask 022\ntar -xpf ${quote(path)} -C / || exit 1\nrm -f ${quote(path)} || exit 1\n`;
}

function isPackable(entry: StagedEntry): entry is Packable {
  return entry.type === "file" && entry.content.kind === "image" && entry.content.tree !== undefined;
}

/** Then it becomes a hard link there. */
function isSameFile({ inode }: StagedFile, other: StagedFile): boolean {
  return inode !== undefined && inode === other.inode;
}

async function hasTar({ layer }: StageState, { facts }: BuildJob): Promise<boolean> {
  return (await facts.isFile(layer.image, "/bin/tar")) || (await facts.isFile(layer.image, "/usr/bin/tar"));
}

function keyOf(files: ReadonlyMap<string, Packable>): string {
  const rows = [...files].map(([path, { sha256, uid, gid, mode }]) => [path, sha256, uid, gid, mode]);
  const sorted = rows.sort(([one = ""], [other = ""]) => (one < other ? -1 : 1));
  return Bun.CryptoHasher.hash("sha256", JSON.stringify(sorted), "hex");
}

async function sendArchive(
  files: ReadonlyMap<string, Packable>,
  key: string,
  build: BuildJob,
): Promise<string> {
  const bytes = files.values().reduce((sum, { size }) => sum + size, 0);
  build.emit({ type: "uploading", files: files.size, bytes });
  const progress = (sentBytes: number) =>
    build.emit({ type: "upload-progress", files: 0, sentBytes, reused: 0 });
  const sent = await build.service.uploadStream(streamOf(writeArchive(files, build)), { progress });
  build.store.copies.setArchive(key, sent.sha256);
  build.emit({ type: "uploaded", files: files.size, sentBytes: sent.size, reused: 0 });
  return sent.uuid;
}

/** The images' own archives once more, each file of them under every path at which it is staged. */
async function* writeArchive(
  files: ReadonlyMap<string, Packable>,
  build: BuildJob,
): AsyncGenerator<Uint8Array> {
  const trees = Map.groupBy(files, ([, { content }]) => JSON.stringify([content.image, content.tree]));
  for (const staged of trees.values()) {
    const [
      ,
      {
        content: { image, tree, layer },
      } = { content: { image: "", tree: "", layer: undefined } },
    ] = staged[0] ?? [];
    const wanted = Map.groupBy(staged, ([, { content }]) => posix.relative(tree, content.path));
    const archive = `the archive of ${tree} of image ${image}`;
    const changed = (path: string) =>
      new BoughError(`${archive} is not what it was, at ${path}: an image never changes`);
    const open = () => build.service.openArchive(image, tree);
    const stream = await detectLoss(layer && { layer }, build, open);
    for await (const entry of entriesOf(stream, (chunks) => readTar(chunks, archive))) {
      build.signal.throwIfAborted();
      const name = posix.join(entry.name);
      const [first, ...links] = wanted.get(name) ?? [];
      if (first === undefined) continue;
      wanted.delete(name);
      const [path, file] = first;
      if (entry.type !== "file" || entry.size !== file.size) throw changed(name);
      yield* writeFile(path, file, entry, () => changed(name));
      const date = new Date(entry.modified * 1000);
      for (const [other] of links)
        yield fileHeader({ ...file, path: other.slice(1), link: path.slice(1) }, date);
    }
    for (const [name] of wanted) throw changed(name);
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
  for await (const chunk of contentOf(entry)) {
    hasher.update(chunk);
    yield chunk;
  }
  if (hasher.digest("hex") !== file.sha256) throw changed();
  if (padding(file.size) > 0) yield new Uint8Array(padding(file.size));
}
