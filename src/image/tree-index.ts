/** Indexes of the files of images, for comparing two images. */
import { whiteoutPrefix } from "./archive-limits.ts";
import { opaqueMark } from "./layer-header.ts";
import { readLayerTar, type TarEntry } from "./tar-reader.ts";

/** Files by path, which is relative to the root, without a slash at the end, and decoded as latin1; the root's is empty. */
export type TreeIndex = Map<string, IndexedFile>;

export interface IndexedFile {
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
  /** Paths that are removed with everything below them; directories whose entries are removed. */
  const [gone, emptied] = [new Set<string>(), new Set<string>()];
  for await (const entry of readLayerTar(archive, name)) {
    const path = pathOf(entry.name);
    const [parent, last] = [parentOf(path), path.slice(path.lastIndexOf("/") + 1)];
    if (last === opaqueMark) emptied.add(parent);
    else if (last.startsWith(whiteoutPrefix)) gone.add(below(parent, last.slice(whiteoutPrefix.length)));
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

/** Reads the file's content. */
export async function indexEntry(entry: TarEntry): Promise<IndexedFile> {
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

export function pathOf(name: string): string {
  return name.replace(/^(\.?\/+)+/, "").replace(/^\.$|\/+$/g, "");
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}

export function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

/** Returns all parent directories without the root. */
export function ancestorsOf(path: string): string[] {
  const found: string[] = [];
  for (let parent = parentOf(path); parent !== ""; parent = parentOf(parent)) found.push(parent);
  return found;
}
