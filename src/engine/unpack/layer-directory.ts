import { mkdirSync, readlinkSync, rmSync, type Stats, unlinkSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import { isWhiteout } from "../copies/layer-tree.ts";
import { giveAttributes } from "../copies/upper-tree.ts";
import { lookUp } from "../sandbox/root/root-path.ts";
import { markOpaque } from "../system/xattrs.ts";
import { type BytePath, fromText, namesIn, showPath, toPath } from "./byte-path.ts";

/** Linux's limit for one path. */
const maxLinks = 40;
/** Directories that are remembered: what is more than any image has is looked up again. */
const maxKnown = 20_000;
/** Directories without an entry of their own: an honest archive has a few. */
const maxImplied = 100_000;

/** A name in a directory of the layer; both are free of links. */
export interface Spot {
  parent: BytePath;
  name: BytePath;
  path: BytePath;
}

/**
 * Where a layer is unpacked to: nobody else writes there, and no path leads out. Links of the layer's own are followed on the way
 * to a name, as if its root were the machine's; what layers below have is not seen.
 */
export class LayerDirectory {
  readonly root: BytePath;
  /** Directories that only paths of other entries name, below the root, in the order they were made. */
  readonly implied = new Set<BytePath>();
  /** Whether anything has been removed again. */
  hasReplaced = false;
  readonly #inUserNamespace: boolean;
  /** Directories that are there, by the path that an archive names them by. */
  readonly #known = new Map<BytePath, BytePath>();

  constructor(root: string, inUserNamespace: boolean) {
    this.root = fromText(root);
    this.#inUserNamespace = inUserNamespace;
  }

  /** Where an entry goes; its directory is made where it is missing. `undefined`: the root itself. */
  locate(name: BytePath): Spot | undefined {
    const end = name.endsWith("/") ? name.length - 1 : name.length;
    const slash = name.lastIndexOf("/", end - 1);
    const last = name.slice(slash + 1, end);
    if (!isOdd(last)) return spotIn(this.#reach(name.slice(0, Math.max(slash, 0))), last);
    const names = namesIn(name);
    const own = names.pop();
    return own === undefined ? undefined : spotIn(this.#walkTo(this.root, names), own);
  }

  /** Where the layer has what a hard link leads to. */
  find(name: BytePath): { path: BytePath; stats: Stats } | undefined {
    const names = namesIn(name);
    const last = names.pop();
    const parent = last === undefined ? undefined : this.#walk(this.root, names, false);
    if (last === undefined || parent === undefined) return undefined;
    const path = `${parent}/${last}`;
    const stats = lookUp(toPath(path));
    return stats === undefined ? undefined : { path, stats };
  }

  /** Makes a directory, or takes the one that is there: then false. `name`: as the archive has it. */
  makeDirectory({ path }: Spot, name: BytePath): boolean {
    const isNew = this.#tryMake(path);
    if (!isNew) {
      const stats = lookUp(toPath(path));
      if (stats?.isDirectory()) this.implied.delete(this.#inside(path));
      else {
        this.clear(path);
        mkdirSync(toPath(path), 0o755);
        // The layer has deleted what layers below have of it, and made it anew.
        if (stats !== undefined && isWhiteout(stats)) this.makeOpaque(path);
      }
    }
    this.#remember(name.endsWith("/") ? name.slice(0, -1) : name, path);
    return isNew;
  }

  #tryMake(path: BytePath): boolean {
    try {
      mkdirSync(toPath(path), 0o755);
      return true;
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
      return false;
    }
  }

  /** Nothing of the layers below is to be seen in a directory. */
  makeOpaque(path: BytePath): void {
    markOpaque(toPath(path), this.#inUserNamespace);
  }

  /** Removes what an earlier entry has put at a path, if anything. */
  clear(path: BytePath): void {
    const stats = lookUp(toPath(path));
    if (stats === undefined) return;
    this.hasReplaced = true;
    if (stats.isDirectory()) {
      rmSync(toPath(path), { recursive: true });
      const inside = this.#inside(path);
      for (const each of this.implied)
        if (each === inside || each.startsWith(`${inside}/`)) this.implied.delete(each);
    } else unlinkSync(toPath(path));
    // A path may have led through it.
    if (stats.isDirectory() || stats.isSymbolicLink()) this.#known.clear();
  }

  #inside(path: BytePath): BytePath {
    return path.slice(this.root.length);
  }

  /** The directory that an archive names so. */
  #reach(name: BytePath): BytePath {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const slash = name.lastIndexOf("/");
    const last = name.slice(slash + 1);
    // What is above it has been reached by another entry, mostly.
    const above = slash > 0 && !isOdd(last) ? this.#known.get(name.slice(0, slash)) : undefined;
    const reached =
      above === undefined ? this.#walkTo(this.root, namesIn(name)) : this.#walkTo(above, [last]);
    this.#remember(name, reached);
    return reached;
  }

  #walkTo(from: BytePath, names: readonly BytePath[]): BytePath {
    return this.#walk(from, names, true) ?? this.root;
  }

  #walk(from: BytePath, names: readonly BytePath[], makesMissing: boolean): BytePath | undefined {
    const waiting = names.toReversed();
    let at = from;
    let links = 0;
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      if (name === "" || name === ".") continue;
      if (name === "..") {
        at = at === this.root ? at : at.slice(0, at.lastIndexOf("/"));
        continue;
      }
      const below = `${at}/${name}`;
      const stats = lookUp(toPath(below));
      if (stats?.isSymbolicLink()) {
        links += 1;
        if (links > maxLinks) throw new BoughError(`${this.#show(below)}: too many links`);
        const target = readlinkSync(toPath(below), "latin1");
        if (target.startsWith("/")) at = this.root;
        waiting.push(...target.split("/").reverse());
        continue;
      }
      if (!stats?.isDirectory()) {
        if (!makesMissing) return undefined;
        this.#makeImplied(below, stats);
      }
      at = below;
    }
    return at;
  }

  #makeImplied(path: BytePath, stats: Stats | undefined): void {
    if (stats !== undefined && !isWhiteout(stats))
      throw new BoughError(`${this.#show(path)} is a file, and something is to be in it`);
    if (this.implied.size >= maxImplied)
      throw new BoughError(`more than ${maxImplied} directories have no entry of their own`);
    if (stats !== undefined) unlinkSync(toPath(path));
    mkdirSync(toPath(path));
    // Whatever this process's umask is, and the group of the directory above.
    giveAttributes(toPath(path), { uid: 0, gid: 0 }, { mode: 0o755 });
    if (stats !== undefined) this.makeOpaque(path);
    else this.implied.add(this.#inside(path));
  }

  #remember(name: BytePath, parent: BytePath): void {
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(name, parent);
  }

  #show(path: BytePath): string {
    return showPath(this.#inside(path));
  }
}

function isOdd(name: BytePath): boolean {
  return name === "" || name === "." || name === "..";
}

function spotIn(parent: BytePath, name: BytePath): Spot {
  return { parent, name, path: `${parent}/${name}` };
}
