import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readlinkSync,
  rmSync,
  type Stats,
} from "node:fs";
import type { BoughError } from "../../errors.ts";
import { namesIn } from "../../image/copy-sources.ts";
import { lookUp, UnreachablePathError } from "../sandbox/root/root-path.ts";
import { readAttributes, writeAttributes } from "../system/xattrs.ts";
import type { LayerTree, MergedDirectory } from "./layer-tree.ts";
import { joinPath, keyOf, type Path } from "./path.ts";

/** Who something is to belong to. */
export interface Ids {
  uid: number;
  gid: number;
}

/** A directory of the file system that an upper directory and the layers below it make. */
export interface UpperDirectory {
  readonly parent: UpperDirectory | undefined;
  /** Where it is, or would be, below the upper directory. */
  readonly path: Path;
  /** The path that the image sees: empty for the root, else `/a/b`. */
  readonly inside: string;
  /** What the layers have of it. */
  readonly lower: MergedDirectory;
  /** Whether the upper directory has it. */
  isUpper: boolean;
  readonly children: Map<string, UpperDirectory>;
}

/** BuildKit's limit for one path. */
const maxLinks = 255;

/** Linux takes paths of 4096 bytes. */
const maxNames = 2048;

/**
 * A file system that is being changed: an upper directory over an image's layers, written to without a mount. What is put in place
 * covers what the layers have there, and a directory of theirs is made anew in the upper one with its attributes, as overlayfs does
 * it, so that a later mount merges them. Nothing else changes the upper directory meanwhile.
 */
export class UpperTree {
  readonly root: UpperDirectory;
  readonly #layers: LayerTree;

  constructor(upper: string, layers: LayerTree) {
    this.#layers = layers;
    const place = { parent: undefined, path: upper, inside: "", lower: layers.root };
    this.root = { ...place, isUpper: true, children: new Map() };
  }

  /** No link is followed. */
  find(directory: UpperDirectory, name: Path): { path: Path; stats: Stats } | undefined {
    const upper = directory.isUpper ? joinPath(directory.path, name) : undefined;
    const stats = upper === undefined ? undefined : lookUp(upper);
    if (upper !== undefined && stats !== undefined) return { path: upper, stats };
    return directory.lower.length === 0 ? undefined : this.#layers.find(directory.lower, name);
  }

  /** A directory that is there. */
  enter(directory: UpperDirectory, name: Path): UpperDirectory {
    const key = keyOf(name);
    const known = directory.children.get(key);
    if (known !== undefined) return known;
    const path = joinPath(directory.path, name);
    const lower = directory.lower.length === 0 ? [] : this.#layers.enter(directory.lower, name);
    const isUpper = directory.isUpper && lookUp(path) !== undefined;
    return remember({ parent: directory, path, inside: insideOf(directory, name), lower, isUpper }, key);
  }

  /** Makes a directory where nothing is. */
  make(directory: UpperDirectory, name: Path): UpperDirectory {
    this.materialize(directory);
    const path = joinPath(directory.path, name);
    mkdirSync(path);
    const place = { parent: directory, path, inside: insideOf(directory, name), lower: [], isUpper: true };
    return remember(place, keyOf(name));
  }

  /** Makes `directory` in the upper directory, too, with the attributes that the layers give it. */
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
    // Whoever looks at the image sees nothing added to it.
    giveTimes(parent.path, before);
  }

  /** The path of a name that something other than a directory may be put under: what was there is gone. */
  clear(directory: UpperDirectory, name: Path): Path {
    this.materialize(directory);
    const path = joinPath(directory.path, name);
    if (lookUp(path) !== undefined) rmSync(path);
    return path;
  }

  /**
   * Where a path leads: its names, none of them a link or `..`. Links are followed inside the root; what is behind the first name
   * that is missing is taken as it is.
   */
  resolve(path: string): string[] {
    const waiting = namesIn(path);
    if (waiting.length > maxNames) throw new UnreachablePathError("a path in the image is too long");
    let reached: { name: string; directory: UpperDirectory | undefined }[] = [];
    let links = 0;
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      if (name === ".") continue;
      if (name === "..") {
        reached.pop();
        continue;
      }
      const last = reached.at(-1);
      const directory = last === undefined ? this.root : last.directory;
      const found = directory === undefined ? undefined : this.find(directory, name);
      if (directory === undefined || !found?.stats.isSymbolicLink()) {
        const isDirectory = directory !== undefined && found?.stats.isDirectory() === true;
        reached.push({ name, directory: isDirectory ? this.enter(directory, name) : undefined });
        continue;
      }
      links += 1;
      if (links > maxLinks) throw new UnreachablePathError(`${path}: too many symbolic links in the image`);
      const target = readlinkSync(found.path, "utf8");
      if (target.startsWith("/")) reached = [];
      waiting.unshift(...namesIn(target));
    }
    return reached.map(({ name }) => name);
  }

  /**
   * The directory at names that `resolve` has answered; what is missing is made, 0755 and of `owner` (of root, or by a setgid
   * directory, where nobody is named). `fail` makes the error of a path that something else is at.
   */
  makeDirectories(
    names: readonly string[],
    owner: Ids | undefined,
    fail: (inside: string) => BoughError,
  ): UpperDirectory {
    let directory = this.root;
    for (const name of names) directory = this.makeDirectory(directory, name, owner, fail);
    return directory;
  }

  /** Does what `makeDirectories` does, for the one of that name in `parent`. */
  makeDirectory(
    parent: UpperDirectory,
    name: string,
    owner: Ids | undefined,
    fail: (inside: string) => BoughError,
  ): UpperDirectory {
    const found = this.find(parent, name);
    if (found?.stats.isDirectory()) return this.enter(parent, name);
    if (found !== undefined) throw fail(insideOf(parent, name));
    const made = this.make(parent, name);
    chmodSync(made.path, 0o755);
    if (owner !== undefined) chownSync(made.path, owner.uid, owner.gid);
    return made;
  }
}

/** Owner and mode; the mode after the owner, whose change takes setuid and setgid away. */
export function giveAttributes(path: Path, owner: Ids, { mode }: { mode: number }): void {
  lchownSync(path, owner.uid, owner.gid);
  chmodSync(path, mode & 0o7777);
}

/**
 * Gives `path`, which is not a link, all of `source` but its content. Extended attributes come after the owner, whose change takes
 * capabilities away.
 */
export function copyMetadata(source: Path, path: Path, stats: Stats): void {
  giveAttributes(path, stats, stats);
  writeAttributes(path, readAttributes(source));
  giveTimes(path, stats);
}

/** Gives times to the microsecond or so: numbers of JavaScript hold no more. */
export function giveTimes(path: Path, { atimeMs, mtimeMs }: Stats): void {
  lutimesSync(path, atimeMs / 1000, mtimeMs / 1000);
}

function remember(place: Omit<UpperDirectory, "children">, key: string): UpperDirectory {
  const directory: UpperDirectory = { ...place, children: new Map() };
  place.parent?.children.set(key, directory);
  return directory;
}

export function insideOf(directory: UpperDirectory, name: Path): string {
  return `${directory.inside}/${name.toString()}`;
}
