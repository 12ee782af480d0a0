import { closeSync, openSync, readSync } from "node:fs";
import { whiteoutPrefix } from "./archive-limits.ts";
import { layerHeader, opaqueWhiteout } from "./layer-header.ts";
import { endBytes, padding } from "./tar-header.ts";
import { readLayerTar, type TarEntry } from "./tar-reader.ts";

/** An entry, and its position in the archive. */
interface ArchivedFile extends IndexedFile {
  start: number;
  end: number;
}

/** Bytes read at once. */
const chunkBytes = 1024 * 1024;

/**
 * Yields the layer that turns `base` into the image whose archive is the file `path`: whiteouts of removed paths, and all changed
 * entries exactly as the archive has them.
 */
export async function* layerDifference(base: TreeIndex, path: string): AsyncGenerator<Uint8Array> {
  const image = await indexArchive(path);
  for (const gone of removedPaths(base, image)) {
    const name = joinPath(parentOf(gone), `${whiteoutPrefix}${gone.slice(gone.lastIndexOf("/") + 1)}`);
    const mark = { flag: "0", mode: 0, uid: 0, gid: 0, size: 0, modified: 0 } as const;
    yield layerHeader({ name: Buffer.from(name, "latin1"), ...mark });
  }
  const changed = changedFiles(base, image);
  const descriptor = openSync(path, "r");
  try {
    for (const [each, { start, end }] of image)
      if (changed.has(each)) yield* readRange(descriptor, start, end);
  } finally {
    closeSync(descriptor);
  }
  yield new Uint8Array(endBytes);
}

/** Returns entries in the archive's order. */
async function indexArchive(path: string): Promise<Map<string, ArchivedFile>> {
  const files = new Map<string, ArchivedFile>();
  let last: ArchivedFile | undefined;
  for await (const entry of readLayerTar(Bun.file(path).stream(), "the archive from the service")) {
    const { start, offset, size } = entry;
    if (last !== undefined) last.end = start;
    last = { ...(await indexEntry(entry)), start, end: offset + size + padding(size) };
    files.set(pathOf(entry.name), last);
  }
  return files;
}

/** Returns the topmost of the removed paths. A directory with entries exists even if the archive does not list it. */
function removedPaths(base: TreeIndex, image: ReadonlyMap<string, ArchivedFile>): string[] {
  const present = new Set(image.keys());
  for (const path of image.keys()) for (const parent of ancestorsOf(path)) present.add(parent);
  const mayHave = (path: string) =>
    path === "" || (present.has(path) && image.get(path)?.isDirectory !== false);
  return [...base.keys()]
    .filter((path) => !present.has(path) && path !== "" && mayHave(parentOf(path)))
    .sort();
}

function changedFiles(base: TreeIndex, image: ReadonlyMap<string, ArchivedFile>): ReadonlySet<string> {
  // An archive in which no entry has attributes does not record them.
  const hasAttributes = image.values().some(({ attributes }) => attributes !== "");
  const isSame = (file: IndexedFile, other: IndexedFile | undefined) =>
    file.state !== undefined &&
    file.state === other?.state &&
    (!hasAttributes || file.attributes === other.attributes);
  const changed = new Set<string>();
  for (const [path, file] of image) if (!isSame(file, base.get(path))) changed.add(path);
  // A hard link and its file must be in the same layer: all names of a file are written, or none.
  const links = [...image].flatMap(([path, { linkTo }]) => (linkTo === undefined ? [] : [{ path, linkTo }]));
  const torn = new Set(
    links.flatMap(({ path, linkTo }) => (changed.has(path) || changed.has(linkTo) ? [linkTo] : [])),
  );
  for (const { path, linkTo } of links) {
    if (!torn.has(linkTo)) continue;
    changed.add(path);
    if (image.has(linkTo)) changed.add(linkTo);
  }
  return changed;
}

function* readRange(descriptor: number, start: number, end: number): Generator<Uint8Array> {
  for (let at = start; at < end; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end - at));
    const count = readSync(descriptor, chunk, 0, chunk.byteLength, at);
    if (count === 0) return;
    yield chunk.subarray(0, count);
    at += count;
  }
}

/** Files by path, which is relative to the root, without a slash at the end, and decoded as latin1; the root's is empty. */
export type TreeIndex = Map<string, IndexedFile>;

interface IndexedFile {
  isDirectory: boolean;
  /** Equal for files that are equal in everything else; `undefined` if that is unknown. */
  state: string | undefined;
  /** Equal for files with equal attributes; empty if there are none. */
  attributes: string;
  /** The path of the file that a hard link leads to. */
  linkTo: string | undefined;
}

/** Applies a layer's archive, with whiteouts, to a tree. https://github.com/opencontainers/image-spec/blob/main/layer.md */
export async function applyLayer(
  tree: TreeIndex,
  archive: AsyncIterable<Uint8Array>,
  name: string,
): Promise<void> {
  const layer: TreeIndex = new Map();
  /** Paths that are removed with everything below them, and directories whose entries are removed. */
  const [gone, emptied] = [new Set<string>(), new Set<string>()];
  for await (const entry of readLayerTar(archive, name)) {
    const path = pathOf(entry.name);
    const [parent, last] = [parentOf(path), path.slice(path.lastIndexOf("/") + 1)];
    if (last === opaqueWhiteout) emptied.add(parent);
    else if (last.startsWith(whiteoutPrefix)) gone.add(joinPath(parent, last.slice(whiteoutPrefix.length)));
    else layer.set(path, await indexEntry(entry));
  }
  for (const [path, { isDirectory }] of layer) {
    if (!isDirectory && tree.get(path)?.isDirectory === true) emptied.add(path);
  }
  if (gone.size > 0 || emptied.size > 0) {
    for (const path of tree.keys()) {
      if (gone.has(path) || ancestorsOf(path).some((each) => gone.has(each) || emptied.has(each)))
        tree.delete(path);
    }
  }
  for (const [path, file] of layer) tree.set(path, file);
}

/** Hashes the file's content, too. */
async function indexEntry(entry: TarEntry): Promise<IndexedFile> {
  const { type, mode, uid, gid, modified } = entry;
  const attributes = entry.attributes
    .map(({ name, value }) => `${name}=${value.toString("hex")}\n`)
    .sort()
    .join("");
  const owned = [type, mode, uid, gid, Math.floor(modified)].join(" ");
  const linkTo = type === "hardlink" ? pathOf(entry.target) : undefined;
  return { isDirectory: type === "directory", state: await stateOf(entry, owned), attributes, linkTo };
}

async function stateOf(entry: TarEntry, owned: string): Promise<string | undefined> {
  switch (entry.type) {
    case "directory":
      return owned;
    case "hardlink":
      return `hardlink ${pathOf(entry.target)}`;
    case "symlink":
      return `${owned} ${entry.target}`;
    case "file": {
      if (entry.isSparse) return undefined;
      const hasher = new Bun.CryptoHasher("sha256");
      for await (const { bytes } of entry.pieces()) hasher.update(bytes);
      return `${owned} ${hasher.digest("hex")}`;
    }
    case "other":
      return [owned, entry.flag, entry.major, entry.minor].join(" ");
  }
}

function pathOf(name: string): string {
  return name.replace(/^(\.?\/+)+/, "").replace(/^\.$|\/+$/g, "");
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}

function joinPath(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

/** Returns all parent directories without the root. */
function ancestorsOf(path: string): string[] {
  const found: string[] = [];
  for (let parent = parentOf(path); parent !== ""; parent = parentOf(parent)) found.push(parent);
  return found;
}
