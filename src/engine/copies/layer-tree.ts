import { lstatSync, readlinkSync, type Stats } from "node:fs";
import type { ImageTree } from "../../image/copy-sources.ts";
import { namesOf } from "../../paths/path-resolution.ts";
import { lookUp } from "../sandbox/root/root-path.ts";
import { type EntryType, joinPath, keyOf, listDirectory, type Path, typeOf } from "../system/path.ts";
import { isOpaque, isWhiteout } from "../system/xattrs.ts";

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

/**
 * An image's file system, read from its layers' directories as overlayfs merges them, but without a mount. Whiteouts and the
 * entries that they hide are left out. Layers never change.
 */
export class LayerTree {
  readonly root: MergedDirectory;
  readonly #inUserNamespace: boolean;
  /** The directories that `enterPath` has found, by path. */
  readonly #entered = new Map<string, MergedDirectory>();

  constructor(layers: MergedDirectory, inUserNamespace: boolean) {
    this.root = layers;
    this.#inUserNamespace = inUserNamespace;
  }

  /** Lists entries in no particular order. */
  list(directory: MergedDirectory): MergedEntry[] {
    const [only] = directory;
    if (only !== undefined && directory.length === 1) return listPart(only).filter(isVisible);
    const seen = new Set<string>();
    return directory.flatMap((part) =>
      listPart(part).filter((entry) => {
        const key = keyOf(entry.name);
        if (seen.has(key)) return false;
        seen.add(key);
        return isVisible(entry);
      }),
    );
  }

  /** Finds an entry, without following links. */
  find(directory: MergedDirectory, name: Path): (LayerPart & { stats: Stats }) | undefined {
    for (const { layer, path } of directory) {
      const below = joinPath(path, name);
      const stats = lookUp(below);
      if (stats !== undefined) return isWhiteout(stats) ? undefined : { layer, path: below, stats };
    }
    return undefined;
  }

  /** Returns the directory `name` in `directory`; empty if there is none. */
  enter(directory: MergedDirectory, name: Path): MergedDirectory {
    const parts: LayerPart[] = [];
    for (const { layer, path } of directory) {
      const below = joinPath(path, name);
      const stats = lookUp(below);
      if (stats === undefined) continue;
      if (!stats.isDirectory()) break;
      parts.push({ layer, path: below });
      if (directory.length > 1 && isOpaque(below, this.#inUserNamespace)) break;
    }
    return parts;
  }

  /** Returns the directory at a path without links, such as `/` or `/a/b`. */
  enterPath(path: string): MergedDirectory {
    const names = namesOf(path);
    const name = names.pop();
    if (name === undefined) return this.root;
    const key = `${names.join("/")}/${name}`;
    const found = this.#entered.get(key) ?? this.enter(this.enterPath(names.join("/")), name);
    this.#entered.set(key, found);
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
      const type = typeOf(found.stats);
      return type === "symlink" ? { type, target: readlinkSync(found.path, "utf8") } : { type };
    },
    list: async (directory) =>
      tree.list(tree.enterPath(directory)).flatMap(({ name }) => (typeof name === "string" ? [name] : [])),
  };
}

function listPart({ layer, path }: LayerPart): MergedEntry[] {
  return listDirectory(path).map(({ name, type }) => ({ layer, name, type, path: joinPath(path, name) }));
}

/** False for whiteouts, which overlayfs stores as devices. */
function isVisible({ type, path }: MergedEntry): boolean {
  return type !== "other" || !isWhiteout(lstatSync(path));
}
