import { lstatSync, readlinkSync, type Stats } from "node:fs";
import type { ImageTree } from "../../../image/copy-sources.ts";
import { namesOf } from "../../../paths/path-resolution.ts";
import { type EntryType, entryType, joinPath, listDirectory, type Path, pathKey } from "../../system/path.ts";
import { isOpaque, isWhiteout } from "../../system/xattrs.ts";
import { lstatIfExists } from "./root-path.ts";

/** A file or directory of one layer. */
interface LayerPart {
  /** The layer's id. */
  layer: number;
  path: Path;
}

/** A directory of an image: the layers' directories that are merged in it, the uppermost first. */
export type MergedDirectory = readonly LayerPart[];

/** An entry of an image, with the layer that it is from; for a directory, the uppermost layer that has it. */
export interface MergedEntry extends LayerPart {
  name: Path;
  type: EntryType;
}

/** The maximum number of entered directories that a tree keeps: enough for the directories into which a build copies. */
const maxEntered = 1000;
/** The maximum number of entries of a directory whose list is kept. */
const maxListed = 10_000;

/**
 * An image's file system, read from its layers' directories as overlayfs merges them, but without a mount. Whiteouts and the
 * entries that they hide are left out. Layers never change.
 */
export class LayerTree {
  readonly root: MergedDirectory;
  readonly #inUserNamespace: boolean;
  /** The tree without the uppermost layer. */
  readonly #below: LayerTree | undefined;
  /** The directories that were entered: by the directory that they are in, and by name. */
  readonly #entered = new Map<MergedDirectory, Map<string, MergedDirectory>>();
  /** Directories without the uppermost layer, by the same directories with it. */
  readonly #rests = new WeakMap<MergedDirectory, MergedDirectory>();
  /** The entries of directories that were listed and are in several layers. */
  readonly #lists = new Map<MergedDirectory, Map<string, MergedEntry>>();
  #free: number;

  /**
   * @param cache set if the tree keeps entered directories, as all of its layers are complete. `below` is the tree without the uppermost
   * layer, if there is one: only the uppermost layer is read for directories that were entered there.
   */
  constructor(layers: MergedDirectory, inUserNamespace: boolean, cache?: { below: LayerTree | undefined }) {
    this.root = layers;
    this.#inUserNamespace = inUserNamespace;
    this.#free = cache === undefined ? 0 : maxEntered;
    this.#below = cache?.below;
    if (this.#below !== undefined) this.#rests.set(layers, this.#below.root);
  }

  /** Lists entries in no particular order. */
  list(directory: MergedDirectory): MergedEntry[] {
    const entries = this.#takeList(directory) ?? addLists(new Map(), directory);
    if (this.#free > 0 && directory.length > 1 && entries.size <= maxListed)
      this.#lists.set(directory, entries);
    return [...entries.values()];
  }

  /** Finds an entry, without following links. */
  find(directory: MergedDirectory, name: Path): (LayerPart & { stats: Stats }) | undefined {
    const entries = this.#takeList(directory);
    if (entries !== undefined) {
      this.#lists.set(directory, entries);
      if (!entries.has(pathKey(name))) return undefined;
    }
    for (const { layer, path } of directory) {
      const below = joinPath(path, name);
      const stats = lstatIfExists(below);
      if (stats !== undefined) return isWhiteout(stats) ? undefined : { layer, path: below, stats };
    }
    return undefined;
  }

  /** Returns the directory `name` in `directory`; empty if there is none. */
  enter(directory: MergedDirectory, name: Path): MergedDirectory {
    return (
      this.#findEntered(directory, name) ??
      this.#addEntered(directory, name, this.#merge(directory, directory, name))
    );
  }

  /** Returns the directory at a path without links, such as `/` or `/a/b`. */
  enterPath(path: string): MergedDirectory {
    return namesOf(path).reduce((directory, name) => this.enter(directory, name), this.root);
  }

  /**
   * Returns the entries of a directory that was listed before, in this tree or in one of fewer layers. That tree gives up its list,
   * since a build continues from its newest layer.
   */
  #takeList(directory: MergedDirectory): Map<string, MergedEntry> | undefined {
    const known = this.#lists.get(directory);
    if (known !== undefined) return known;
    const rest = this.#rests.get(directory);
    if (rest === undefined || this.#below === undefined) return undefined;
    const entries = this.#below.#takeList(rest);
    this.#below.#lists.delete(rest);
    return entries && addLists(entries, directory.slice(0, directory.length - rest.length));
  }

  /** Returns a directory that was entered before, in this tree or in one of fewer layers. */
  #findEntered(directory: MergedDirectory, name: Path): MergedDirectory | undefined {
    const known = this.#entered.get(directory)?.get(pathKey(name));
    if (known !== undefined) return known;
    const rest = this.#rests.get(directory);
    if (rest === undefined || this.#below === undefined) return undefined;
    const lower = this.#below.#findEntered(rest, name);
    if (lower === undefined) return undefined;
    const above = directory.slice(0, directory.length - rest.length);
    return this.#addEntered(directory, name, this.#merge(directory, above, name, lower));
  }

  #addEntered(directory: MergedDirectory, name: Path, found: MergedDirectory): MergedDirectory {
    if (this.#free > 0) {
      this.#free--;
      this.#entered.getOrInsertComputed(directory, () => new Map()).set(pathKey(name), found);
    }
    return found;
  }

  /** Merges the directories `name` in `parts` of a directory with `lower`, the one in its other parts. */
  #merge(
    directory: MergedDirectory,
    parts: MergedDirectory,
    name: Path,
    lower?: MergedDirectory,
  ): MergedDirectory {
    const merged: LayerPart[] = [];
    for (const { layer, path } of parts) {
      const below = joinPath(path, name);
      const stats = lstatIfExists(below);
      if (stats === undefined) continue;
      if (!stats.isDirectory()) return merged;
      merged.push({ layer, path: below });
      if (directory.length > 1 && isOpaque(below, this.#inUserNamespace)) return merged;
    }
    if (lower === undefined) return merged;
    const found = merged.length === 0 ? lower : [...merged, ...lower];
    this.#rests.set(found, lower);
    return found;
  }
}

/** Returns the tree as the words of a COPY see it: they are UTF-8, and can name only entries whose names are UTF-8. */
export function imageTreeOf(tree: LayerTree): ImageTree {
  return {
    async lookUp(path) {
      const names = namesOf(path);
      const name = names.pop();
      if (name === undefined) return { type: "directory" };
      const found = tree.find(tree.enterPath(names.join("/")), name);
      if (found === undefined) return undefined;
      const type = entryType(found.stats);
      return type === "symlink" ? { type, target: readlinkSync(found.path, "utf8") } : { type };
    },
    list: async (directory) =>
      tree.list(tree.enterPath(directory)).flatMap(({ name }) => (typeof name === "string" ? [name] : [])),
  };
}

/** Adds a directory's entries in further layers to those of the layers below. */
function addLists(entries: Map<string, MergedEntry>, parts: MergedDirectory): Map<string, MergedEntry> {
  for (const { layer, path } of parts.toReversed())
    for (const { name, type } of listDirectory(path)) {
      const entry = { layer, name, type, path: joinPath(path, name) };
      if (isVisible(entry)) entries.set(pathKey(name), entry);
      else entries.delete(pathKey(name));
    }
  return entries;
}

/** Returns false for whiteouts, which overlayfs stores as devices. */
function isVisible({ type, path }: MergedEntry): boolean {
  return type !== "other" || !isWhiteout(lstatSync(path));
}
