import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { type ImageTree, namesIn } from "../../image/copy-sources.ts";
import { lookUp } from "../sandbox/root/root-path.ts";
import { isOpaque } from "../system/xattrs.ts";
import { type EntryType, joinPath, keyOf, listDirectory, type Path, typeOf } from "./path.ts";

/** A directory of a layer. */
interface LayerPart {
  /** The layer's id. */
  layer: number;
  path: Path;
}

/** A directory of an image: those of its layers that are merged in it, the uppermost first. */
export type MergedDirectory = readonly LayerPart[];

/** What an image has under a name, and the layer that it is from. Of a directory: the uppermost layer's. */
export interface MergedEntry extends LayerPart {
  name: Path;
  type: EntryType;
}

/**
 * An image's file system, read from its layers' own directories as overlayfs merges them, without a mount. Whiteouts and what they
 * hide are not there. Nothing changes layers.
 */
export class LayerTree {
  readonly root: MergedDirectory;
  readonly #inUserNamespace: boolean;

  constructor(layers: MergedDirectory, inUserNamespace: boolean) {
    this.root = layers;
    this.#inUserNamespace = inUserNamespace;
  }

  /** Lists entries in no order. */
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

  /** No link is followed. */
  find(directory: MergedDirectory, name: Path): (LayerPart & { stats: Stats }) | undefined {
    for (const { layer, path } of directory) {
      const below = joinPath(path, name);
      const stats = lookUp(below);
      if (stats !== undefined) return isWhiteout(stats) ? undefined : { layer, path: below, stats };
    }
    return undefined;
  }

  /** What is merged in a directory below `directory`; empty where there is none. */
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

  /** The directory at a path without links: `/` or `/a/b`. */
  enterPath(path: string): MergedDirectory {
    return namesIn(path).reduce((directory, name) => this.enter(directory, name), this.root);
  }
}

/** The tree for words that name sources: they are UTF-8, and so is what they name. */
export function imageTreeOf(tree: LayerTree): ImageTree {
  return {
    async lookUp(path) {
      const names = namesIn(path);
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

/** Whiteouts are the one kind of device that layers have a meaning for. */
function isVisible({ type, path }: MergedEntry): boolean {
  return type !== "other" || !isWhiteout(lstatSync(path));
}

/** How overlayfs says that what layers further down have of a name is gone. */
export function isWhiteout(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0;
}
