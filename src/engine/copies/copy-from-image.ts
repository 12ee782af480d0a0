import { lchownSync, lstatSync, readlinkSync, type Stats, symlinkSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { enterFilters, type Filter, mayPassBelow, passesAll } from "../../context/patterns/filters.ts";
import { BoughError } from "../../errors.ts";
import type { ModeChange } from "../../image/file-mode.ts";
import type { Pace } from "../../pace.ts";
import { namesOf } from "../../paths/path-resolution.ts";
import type { BackgroundSync } from "../records/layer-sync.ts";
import type { LayerTree, MergedDirectory, MergedEntry } from "../sandbox/root/layer-tree.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import { entryType, joinPath, type Path } from "../system/path.ts";
import { makeNode, readAttributes, writeAttributes } from "../system/xattrs.ts";
import { patternText, type SelectedSource } from "./copy-spec.ts";
import { type Linker, type LinkPolicy, tryLink } from "./linker.ts";
import {
  type Ids,
  insideOf,
  type MadeDirectory,
  setFileTimes,
  type UpperDirectory,
  type UpperTree,
} from "./upper-tree.ts";
import { copyContent } from "./verified-copy.ts";

/** The destination of one copy's sources, and their owner and mode there. */
interface CopyTarget {
  destination: string;
  owner: Ids | undefined;
  changeMode: ModeChange | undefined;
  directoryMode?: number | undefined;
}

/** Copies one source to its destination, as BuildKit does. */
export async function copySource(
  source: SelectedSource,
  { destination, owner, changeMode, directoryMode: mode }: CopyTarget,
  job: ImageCopyJob,
): Promise<void> {
  const { from, to } = job;
  const { links, ...unlinked } = job;
  // As in BuildKit, a file that is copied by itself has one link: a hard link to its layer would be a second one.
  const isLinked = source.type === "directory" && links !== undefined;
  const copier = new ImageCopier(isLinked ? job : unlinked, owner, changeMode);
  const made = { owner, mode };
  const place = posix.normalize(destination);
  const isDirectory = /\/\.?$/.test(destination);
  makeParents(to, to.resolve(isDirectory ? place : posix.dirname(place)), made);
  const names = to.resolve(place);
  const existing = names.length === 0 ? "directory" : typeAt(to, names);
  if (source.type === "directory") {
    if (existing !== undefined && existing !== "directory")
      throw new BoughError(`cannot copy to non-directory: /${names.join("/")}`);
    const root = makeParents(to, names, made);
    const target: LazyDirectory = { open: () => ({ directory: root, isNew: existing === undefined }) };
    const contents = from.enterPath(source.path);
    await copier.copyChildren(contents, target, source.filters);
    await copier.finish();
    const [original] = contents;
    if (original === undefined) return;
    to.materialize(root);
    setFileTimes(root.path, lstatSync(original.path));
    return;
  }
  const path = existing === "directory" ? [...names, source.name] : names;
  const name = path.at(-1) ?? "";
  const parts = namesOf(source.path);
  const found = from.find(from.enterPath(parts.slice(0, -1).join("/")), parts.at(-1) ?? "");
  if (found === undefined) throw new BoughError(`${JSON.stringify(source.path)}: not found`);
  const entry = { ...found, name, type: entryType(found.stats) };
  const directory = makeParents(to, path.slice(0, -1), made);
  await copier.copyEntry(entry, { directory, isNew: false });
  await copier.finish();
}

function makeParents(to: UpperTree, names: readonly string[], made: MadeDirectory): UpperDirectory {
  return to.makeDirectories(names, made, (inside) => new BoughError(`mkdir ${inside}: not a directory`));
}

/** Returns the type of the entry at resolved names, `undefined` if there is none. */
function typeAt(to: UpperTree, names: readonly string[]): ReturnType<typeof entryType> | undefined {
  let directory = to.root;
  for (const [index, name] of names.entries()) {
    const found = to.find(directory, name);
    if (found === undefined) return undefined;
    if (index === names.length - 1) return entryType(found.stats);
    if (!found.stats.isDirectory()) return undefined;
    directory = to.enter(directory, name);
  }
  return undefined;
}

/** A directory into which entries are copied. */
interface TargetDirectory {
  directory: UpperDirectory;
  /** True if this copy made the directory, so that existing entries need not be looked up. */
  isNew: boolean;
}

/** A directory that is made when the first entry is copied into it. */
interface LazyDirectory {
  open(): TargetDirectory;
}

/** The source of a copy, its target, and the rules that it keeps. */
interface ImageCopyJob {
  from: LayerTree;
  to: UpperTree;
  /** Makes hard links instead of copies; without it, each file is copied. */
  links?: { policy: LinkPolicy; linker: Linker };
  pace: Pace;
  backgroundSync?: BackgroundSync;
}

/** The maximum number of directories whose metadata is kept in memory until it is set. */
const maxPendingDirectories = 1_000;

/** Copies entries of an image's layers into a tree, with their metadata. */
class ImageCopier {
  readonly #from: LayerTree;
  readonly #to: UpperTree;
  readonly #links: ImageCopyJob["links"];
  readonly #pace: Pace;
  readonly #backgroundSync: BackgroundSync | undefined;
  readonly #owner: Ids | undefined;
  readonly #changeMode: ModeChange | undefined;
  /** Copies of hard-linked files, by the original's inode. */
  readonly #copied = new Map<number, Path>();
  /** Directories that are complete except for links that are still being made, and for their metadata. */
  #pendingDirectories: { path: Path; entry: MergedEntry; stats: Stats }[] = [];

  constructor(job: ImageCopyJob, owner: Ids | undefined, changeMode: ModeChange | undefined) {
    this.#from = job.from;
    this.#to = job.to;
    this.#links = job.links;
    this.#pace = job.pace;
    this.#backgroundSync = job.backgroundSync;
    this.#owner = owner;
    this.#changeMode = changeMode;
  }

  /** Completes what has been copied. */
  async finish(): Promise<void> {
    await this.#links?.linker.drain();
    for (const { path, entry, stats } of this.#pendingDirectories.splice(0)) {
      const pause = this.#pace.step();
      if (pause !== undefined) await pause;
      this.#describe(path, entry, stats);
    }
  }

  async copyChildren(
    source: MergedDirectory,
    target: LazyDirectory,
    filters: readonly Filter[],
  ): Promise<void> {
    for (const entry of this.#from.list(source)) {
      const pause = this.#pace.step();
      if (pause !== undefined) await pause;
      const text = patternText(entry.name);
      const isKept = passesAll(filters, text);
      if (entry.type !== "directory") {
        const copying = isKept ? this.copyEntry(entry, target.open()) : undefined;
        if (copying !== undefined) await copying;
      } else if (isKept || mayPassBelow(filters, text)) {
        const below = source.length === 1 ? [entry] : this.#from.enter(source, entry.name);
        await this.#copyDirectory(entry, below, target, isKept, enterFilters(filters, text));
      }
    }
  }

  async #copyDirectory(
    entry: MergedEntry,
    source: MergedDirectory,
    parent: LazyDirectory,
    isKept: boolean,
    filters: readonly Filter[],
  ): Promise<void> {
    const stats = lstatSync(entry.path);
    let place: TargetDirectory | undefined;
    const target: LazyDirectory = {
      open: () => {
        if (place !== undefined) return place;
        place = this.#openDirectory(entry, parent.open());
        if (place.isNew && !isKept) this.#describe(place.directory.path, entry, stats);
        return place;
      },
    };
    if (isKept) target.open();
    await this.copyChildren(source, target, filters);
    // Its metadata is set last, since each file added to it changes its modification time.
    if (place !== undefined && isKept)
      this.#pendingDirectories.push({ path: target.open().directory.path, entry, stats });
    if (this.#pendingDirectories.length >= maxPendingDirectories) await this.finish();
  }

  #openDirectory({ name }: MergedEntry, { directory, isNew }: TargetDirectory): TargetDirectory {
    const existing = isNew ? undefined : this.#to.find(directory, name);
    if (existing === undefined) return { directory: this.#to.make(directory, name), isNew: true };
    if (!existing.stats.isDirectory())
      throw new BoughError(`cannot copy to non-directory: ${insideOf(directory, name)}`);
    const below = this.#to.enter(directory, name);
    this.#to.materialize(below);
    return { directory: below, isNew: false };
  }

  /** Copies any entry but a directory. */
  copyEntry(entry: MergedEntry, { directory, isNew }: TargetDirectory): Promise<void> | undefined {
    if (!isNew && this.#to.find(directory, entry.name)?.stats.isDirectory())
      throw new BoughError(`cannot replace to directory ${insideOf(directory, entry.name)} with file`);
    const path = isNew ? joinPath(directory.path, entry.name) : this.#to.clear(directory, entry.name);
    let known: Stats | undefined;
    const stats = () => {
      known ??= lstatSync(entry.path);
      return known;
    };
    const copy = () => this.#copy(entry, stats(), path);
    if (this.#links === undefined || !this.#isSame(entry, stats)) return copy();
    const { policy, linker } = this.#links;
    return policy.allows(entry, stats) ? linker.link(entry.path, path, copy) : copy();
  }

  /** Returns true if the copy would have the owner and mode of the layer's file. */
  #isSame({ type }: MergedEntry, stats: () => Stats): boolean {
    const owner = this.#owner;
    if (type === "other" && stats().isSocket()) return false;
    if (owner !== undefined && (stats().uid !== owner.uid || stats().gid !== owner.gid)) return false;
    return (
      this.#changeMode === undefined ||
      type === "symlink" ||
      this.#modeOf(stats()) === (stats().mode & 0o7777)
    );
  }

  #modeOf(stats: Stats): number {
    const mode = stats.mode & 0o7777;
    return this.#changeMode?.(mode, stats.isDirectory()) ?? mode;
  }

  #copy(entry: MergedEntry, stats: Stats, path: Path): Promise<void> | undefined {
    if (entry.type === "symlink") {
      symlinkSync(readlinkSync(entry.path, "buffer"), path);
    } else if (stats.isSocket()) {
      // BuildKit copies a socket as an empty file.
      writeFileSync(path, "", { flag: "wx" });
    } else if (entry.type === "other") {
      if (!makeNode(path, stats.mode, stats.rdev))
        throw new BoughError(`${entry.name.toString()} is a device, which cannot be created here`, {
          hint: "Only root can create devices.",
        });
    } else {
      const copied = stats.nlink > 1 ? this.#copied.get(stats.ino) : undefined;
      if (copied !== undefined && tryLink(copied, path)) return undefined;
      if (stats.nlink > 1) this.#copied.set(stats.ino, path);
      this.#backgroundSync?.addFiles(1, stats.size);
      const copying = copyContent(entry.path, path, stats.size);
      if (copying !== undefined) return copying.then(() => this.#describe(path, entry, stats));
    }
    this.#describe(path, entry, stats);
    return undefined;
  }

  /** Sets a copy's metadata. Extended attributes come after the owner, since changing the owner drops capabilities. */
  #describe(path: Path, { type, path: source }: { type: string; path: Path }, stats: Stats): void {
    const owner = this.#owner ?? stats;
    if (type === "symlink") lchownSync(path, owner.uid, owner.gid);
    else setOwnerAndModeAt(path, owner, { mode: this.#modeOf(stats) });
    writeAttributes(path, readAttributes(source));
    setFileTimes(path, stats);
  }
}
