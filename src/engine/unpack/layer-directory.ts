import { mkdirSync, readlinkSync, rmSync, type Stats, unlinkSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { directoryMode } from "../../image/file-mode.ts";
import { PathResolution } from "../../paths/path-resolution.ts";
import { errorCode } from "../../system-error.ts";
import { lstatIfExists } from "../sandbox/root/root-path.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import { type BytePath, pathNames, showPath, toBytePath, toPath } from "../system/path.ts";
import { isWhiteout, markOpaque } from "../system/xattrs.ts";

/** The maximum number of known directories, more than most images have. Beyond it they are looked up again. */
const maxKnown = 20_000;
/** The maximum number of directories without an entry; a normal archive has a few. */
const maxImplied = 100_000;

/** A place in the layer: a name in a directory, whose path is free of links. */
export interface EntryPlace {
  parent: BytePath;
  name: BytePath;
  path: BytePath;
}

/**
 * The directory into which a layer is unpacked. Nothing else may write there. Links in a path are followed as if the directory
 * were the root, so that no path leads out. Entries of layers below are not seen.
 */
export class LayerDirectory {
  readonly root: BytePath;
  /** Directories without an entry, which only the paths of other entries name; relative to the root, in the order of creation. */
  readonly implied = new Set<BytePath>();
  /** True if an entry has been removed again. */
  hasReplaced = false;
  /** True if a directory has been marked as opaque. */
  hasOpaque = false;
  readonly #inUserNamespace: boolean;
  /** Existing directories, by their path in the archive. */
  readonly #known = new Map<BytePath, BytePath>();

  constructor(root: string, inUserNamespace: boolean) {
    this.root = toBytePath(root);
    this.#inUserNamespace = inUserNamespace;
  }

  /** Returns the place for an entry, and makes its directory if it is missing. Returns `undefined` for the root itself. */
  locate(name: BytePath): EntryPlace | undefined {
    const end = name.endsWith("/") ? name.length - 1 : name.length;
    const slash = name.lastIndexOf("/", end - 1);
    const last = name.slice(slash + 1, end);
    if (!isSpecialName(last)) return entryPlace(this.#reach(name.slice(0, Math.max(slash, 0))), last);
    const names = pathNames(name);
    const own = names.pop();
    return own === undefined ? undefined : entryPlace(this.#walkTo("", names.join("/")), own);
  }

  /** Finds the target of a hard link in the layer. */
  find(name: BytePath): { path: BytePath; stats: Stats } | undefined {
    const names = pathNames(name);
    const last = names.pop();
    const parent = last === undefined ? undefined : this.#walk("", names.join("/"), false);
    if (last === undefined || parent === undefined) return undefined;
    const path = `${parent}/${last}`;
    const stats = lstatIfExists(toPath(path));
    return stats === undefined ? undefined : { path, stats };
  }

  /** Makes a directory. Returns false if the place was taken; a directory there stays. `name` is its path in the archive. */
  makeDirectory({ path }: EntryPlace, name: BytePath): boolean {
    const isNew = this.#tryMake(path);
    if (!isNew) {
      const stats = lstatIfExists(toPath(path));
      if (stats?.isDirectory()) this.implied.delete(this.#inside(path));
      else {
        this.clear(path);
        mkdirSync(toPath(path));
        // The layer has deleted the directory of the layers below, and made it again.
        if (stats !== undefined && isWhiteout(stats)) this.makeOpaque(path);
      }
    }
    this.#addKnown(name.endsWith("/") ? name.slice(0, -1) : name, path);
    return isNew;
  }

  #tryMake(path: BytePath): boolean {
    try {
      mkdirSync(toPath(path));
      return true;
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
      return false;
    }
  }

  /** Marks a directory as opaque, so that it hides the layers below. */
  makeOpaque(path: BytePath): void {
    markOpaque(toPath(path), this.#inUserNamespace);
    this.hasOpaque = true;
  }

  /** Removes what an earlier entry has made at a path, if anything. */
  clear(path: BytePath): void {
    const stats = lstatIfExists(toPath(path));
    if (stats === undefined) return;
    this.hasReplaced = true;
    if (stats.isDirectory()) {
      rmSync(toPath(path), { recursive: true });
      const inside = this.#inside(path);
      for (const each of this.implied)
        if (each === inside || each.startsWith(`${inside}/`)) this.implied.delete(each);
    } else unlinkSync(toPath(path));
    // A known path may have led through it.
    if (stats.isDirectory() || stats.isSymbolicLink()) this.#known.clear();
  }

  #inside(path: BytePath): BytePath {
    return path.slice(this.root.length);
  }

  /** Returns the directory of a path in the archive, and makes it if it is missing. */
  #reach(name: BytePath): BytePath {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const slash = name.lastIndexOf("/");
    const last = name.slice(slash + 1);
    // Another entry has usually reached the parent already.
    const above = slash > 0 && !isSpecialName(last) ? this.#known.get(name.slice(0, slash)) : undefined;
    const reached =
      above === undefined
        ? this.#walkTo("", pathNames(name).join("/"))
        : this.#walkTo(this.#inside(above), last);
    this.#addKnown(name, reached);
    return reached;
  }

  #walkTo(from: BytePath, path: BytePath): BytePath {
    return this.#walk(from, path, true) ?? this.root;
  }

  /** Follows a path from a directory of the layer, which has no links. */
  #walk(from: BytePath, path: BytePath, makesMissing: boolean): BytePath | undefined {
    const tooManyLinks = () => new BoughError(`${showPath(`${from}/${path}`)}: too many links`);
    const resolution = new PathResolution(path, { tooManyLinks }, pathNames(from));
    const placeOf = (...names: BytePath[]) => [this.root, ...resolution.reached, ...names].join("/");
    for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
      const below = placeOf(name);
      const stats = lstatIfExists(toPath(below));
      if (stats?.isSymbolicLink()) {
        resolution.follow(readlinkSync(toPath(below), "latin1"));
        continue;
      }
      if (!stats?.isDirectory()) {
        if (!makesMissing) return undefined;
        this.#makeImplied(below, stats);
      }
      resolution.enter(name);
    }
    return placeOf();
  }

  #makeImplied(path: BytePath, stats: Stats | undefined): void {
    if (stats !== undefined && !isWhiteout(stats))
      throw new BoughError(`${this.#show(path)} is a file, but other entries are below it`);
    if (this.implied.size >= maxImplied)
      throw new BoughError(`more than ${maxImplied} directories have no entry of their own`);
    if (stats !== undefined) unlinkSync(toPath(path));
    mkdirSync(toPath(path));
    // mkdir applies this process's umask, and the group of a setgid parent.
    setOwnerAndModeAt(toPath(path), { uid: 0, gid: 0 }, { mode: directoryMode });
    if (stats !== undefined) this.makeOpaque(path);
    else this.implied.add(this.#inside(path));
  }

  #addKnown(name: BytePath, parent: BytePath): void {
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(name, parent);
  }

  #show(path: BytePath): string {
    return showPath(this.#inside(path));
  }
}

function isSpecialName(name: BytePath): boolean {
  return name === "" || name === "." || name === "..";
}

function entryPlace(parent: BytePath, name: BytePath): EntryPlace {
  return { parent, name, path: `${parent}/${name}` };
}
