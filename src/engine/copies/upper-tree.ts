import {
  chmodSync,
  chownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readlinkSync,
  rmSync,
  type Stats,
} from "node:fs";
import { basename, dirname } from "node:path";
import { fileTime } from "../../clock.ts";
import type { BoughError } from "../../errors.ts";
import { directoryMode } from "../../image/file-mode.ts";
import type { LayerTree, MergedDirectory } from "../sandbox/root/layer-tree.ts";
import { lstatIfExists, resolutionInImage } from "../sandbox/root/root-path.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import { joinPath, type Path, pathKey } from "../system/path.ts";
import { isFileSystemAttribute, readAttributes, writeAttributes } from "../system/xattrs.ts";
import type { PlacedAttributes } from "./file-spec.ts";

/** An entry's owner and group. */
export interface Ids {
  uid: number;
  gid: number;
}

/** The owner and mode of missing directories that are made. */
export interface MadeDirectory {
  owner?: Ids | undefined;
  mode?: number | undefined;
}

/** A directory of the file system that consists of an upper directory and the layers below it. */
export interface UpperDirectory {
  readonly parent: UpperDirectory | undefined;
  /** Its path in the upper directory, which may not exist yet. */
  readonly path: Path;
  /** Its path in the image: empty for the root, else `/a/b`. */
  readonly inside: string;
  /** The same directory in the layers. */
  readonly lower: MergedDirectory;
  /** True if the directory exists in the upper directory. */
  isUpper: boolean;
  readonly children: Map<string, UpperDirectory>;
}

/**
 * An upper directory over an image's layers, written to without a mount. New entries cover those of the layers. A directory of
 * the layers is made again in the upper directory with its attributes, as overlayfs does, so that a later mount merges them.
 * Nothing else may change the upper directory meanwhile, except for links that threads make.
 */
export class UpperTree {
  readonly root: UpperDirectory;
  readonly #layers: LayerTree;

  constructor(upper: string, layers: LayerTree) {
    this.#layers = layers;
    const place = { parent: undefined, path: upper, inside: "", lower: layers.root };
    this.root = { ...place, isUpper: true, children: new Map() };
  }

  /** Finds an entry, without following links. */
  find(directory: UpperDirectory, name: Path): { path: Path; stats: Stats } | undefined {
    const upper = directory.isUpper ? joinPath(directory.path, name) : undefined;
    const stats = upper === undefined ? undefined : lstatIfExists(upper);
    if (upper !== undefined && stats !== undefined) return { path: upper, stats };
    return directory.lower.length === 0 ? undefined : this.#layers.find(directory.lower, name);
  }

  /** Returns an existing directory. */
  enter(directory: UpperDirectory, name: Path): UpperDirectory {
    const key = pathKey(name);
    const known = directory.children.get(key);
    if (known !== undefined) return known;
    const path = joinPath(directory.path, name);
    const lower = directory.lower.length === 0 ? [] : this.#layers.enter(directory.lower, name);
    const isUpper = directory.isUpper && lstatIfExists(path) !== undefined;
    return addChild({ parent: directory, path, inside: insideOf(directory, name), lower, isUpper }, key);
  }

  /** Makes a directory that does not exist yet. */
  make(directory: UpperDirectory, name: Path): UpperDirectory {
    this.materialize(directory);
    const path = joinPath(directory.path, name);
    mkdirSync(path);
    const place = { parent: directory, path, inside: insideOf(directory, name), lower: [], isUpper: true };
    return addChild(place, pathKey(name));
  }

  /** Makes `directory` in the upper directory, with the attributes that it has in the layers. */
  materialize(directory: UpperDirectory): void {
    const { parent, path, lower } = directory;
    if (directory.isUpper || parent === undefined) return;
    this.materialize(parent);
    const before = lstatSync(parent.path);
    mkdirSync(path);
    const [uppermost] = lower;
    if (uppermost !== undefined) {
      copyMetadata(uppermost.path, path, lstatSync(uppermost.path));
    }
    directory.isUpper = true;
    // For the image, the parent has not changed.
    setFileTimes(parent.path, before);
  }

  /** Removes the entry of this name from the upper directory, if there is one, and returns its path. */
  clear(directory: UpperDirectory, name: Path): Path {
    this.materialize(directory);
    const path = joinPath(directory.path, name);
    if (lstatIfExists(path) !== undefined) rmSync(path, { recursive: true });
    directory.children.delete(pathKey(name));
    return path;
  }

  /**
   * Resolves a path to names, none of them a link or `..`. Links are followed inside the root. The rest of the path after the
   * first missing name is taken literally.
   */
  resolve(path: string): string[] {
    const resolution = resolutionInImage(path);
    /** The directories at the names that were reached, as far as they exist. */
    const directories: (UpperDirectory | undefined)[] = [];
    for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
      directories.length = resolution.reached.length;
      const directory = directories.length === 0 ? this.root : directories.at(-1);
      const found = directory === undefined ? undefined : this.find(directory, name);
      if (found?.stats.isSymbolicLink()) {
        resolution.follow(readlinkSync(found.path, "utf8"));
        continue;
      }
      const isDirectory = directory !== undefined && found?.stats.isDirectory() === true;
      directories.push(isDirectory ? this.enter(directory, name) : undefined);
      resolution.enter(name);
    }
    return resolution.reached;
  }

  /**
   * Returns the directory at names from `resolve`. Makes missing directories with `mode` and `owner` (if `undefined`: 0755, root,
   * and the group of a setgid parent). `fail` makes the error for a path that is not a directory.
   */
  makeDirectories(
    names: readonly string[],
    made: MadeDirectory | undefined,
    fail: (inside: string) => BoughError,
  ): UpperDirectory {
    let directory = this.root;
    for (const name of names) directory = this.makeDirectory(directory, name, made, fail);
    return directory;
  }

  /** Does what `makeDirectories` does, for the one directory `name` in `parent`. */
  makeDirectory(
    parent: UpperDirectory,
    name: string,
    { owner, mode = directoryMode }: MadeDirectory = {},
    fail: (inside: string) => BoughError,
  ): UpperDirectory {
    const found = this.find(parent, name);
    if (found?.stats.isDirectory()) return this.enter(parent, name);
    if (found !== undefined) throw fail(insideOf(parent, name));
    const made = this.make(parent, name);
    chmodSync(made.path, mode);
    if (owner !== undefined) chownSync(made.path, owner.uid, owner.gid);
    return made;
  }
}

/** Sets extended attributes given in base64. Call it after the owner is set, since changing the owner drops capabilities. */
export function setExtendedAttributes(path: Path, { attributes }: PlacedAttributes): void {
  if (attributes === undefined) return;
  const own = Object.entries(attributes).filter(([name]) => !isFileSystemAttribute(name));
  writeAttributes(
    path,
    own.map(([name, value]) => ({ name, value: Buffer.from(value, "base64") })),
  );
}

/**
 * Copies the metadata of `source` to `path`, which is not a link. Extended attributes come after the owner, since changing the
 * owner drops capabilities.
 */
export function copyMetadata(source: Path, path: Path, stats: Stats): void {
  setOwnerAndModeAt(path, stats, stats);
  writeAttributes(path, readAttributes(source));
  setFileTimes(path, stats);
}

/** Sets times, to about a microsecond, which is the precision of JavaScript's numbers. */
export function setFileTimes(path: Path, { atimeMs, mtimeMs }: Stats): void {
  lutimesSync(path, fileTime(atimeMs / 1000), fileTime(mtimeMs / 1000));
}

function addChild(place: Omit<UpperDirectory, "children">, key: string): UpperDirectory {
  const directory: UpperDirectory = { ...place, children: new Map() };
  place.parent?.children.set(key, directory);
  return directory;
}

export function insideOf(directory: UpperDirectory, name: Path): string {
  return `${directory.inside}/${name.toString()}`;
}

/**
 * Returns a function that finds or makes the directory at an absolute path. It starts from the nearest known parent, since
 * walking from the root is slow in a deep tree. `fail` makes the error for a path that is not a directory. No link of the tree
 * may be replaced meanwhile.
 */
export function createDirectoryMaker(
  to: UpperTree,
): (path: string, fail: (inside: string) => BoughError) => UpperDirectory {
  const known = new Map<string, UpperDirectory>([["/", to.root]]);
  return (path, fail) => {
    const walk = (wanted: string) => to.makeDirectories(to.resolve(wanted), undefined, fail);
    if (hasDots(path)) return walk(path);
    const missing: string[] = [];
    let above = path;
    for (; !known.has(above); above = dirname(above)) missing.push(above);
    let directory = known.get(above) ?? to.root;
    for (const next of missing.reverse()) {
      const name = basename(next);
      const isLink = to.find(directory, name)?.stats.isSymbolicLink() === true;
      directory = isLink ? walk(next) : to.makeDirectory(directory, name, undefined, fail);
      known.set(next, directory);
    }
    return directory;
  };
}

/** Returns true if the path has a component `.` or `..`, or two slashes in a row. */
function hasDots(path: string): boolean {
  return /\/\.{0,2}(\/|$)/.test(path) && path !== "/";
}
