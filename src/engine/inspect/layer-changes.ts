import { lstatSync, type Stats } from "node:fs";
import type { ChangedAmount } from "../../service/wire/image.ts";
import type { LayerTree, MergedDirectory } from "../copies/layer-tree.ts";
import { hasSameOwnerAndMode } from "../system/owner-and-mode.ts";
import { type EntryType, joinPath, keyOf, listDirectory, type Path, typeOf } from "../system/path.ts";
import { isOpaque, isWhiteout } from "../system/xattrs.ts";

/** A layer's change to one path. */
export interface Change {
  kind: "added" | "changed" | "deleted";
  path: Path;
  type: EntryType;
  /** Permission bits; for a deletion, those of the deleted entry. */
  mode: number;
  /** The size of the layer's own content. */
  size: number;
  /** The amounts that the change hides in layers below, by layer. */
  hidden: ReadonlyMap<number, ChangedAmount>;
}

/**
 * Yields what a layer's directory adds, changes and deletes. The contents of a deleted directory are part of that directory's
 * change. Yields `undefined` after each step, so that the caller can give way to other work. Adds to `hiddenLinks` hard-linked
 * files of which one name is hidden.
 */
export function* changesOf(
  directory: Path,
  below: LayerTree,
  { inUserNamespace, hiddenLinks }: { inUserNamespace: boolean; hiddenLinks: Links },
): Generator<Change | undefined> {
  const linked: Links = new Set();
  const waiting: Place[] = [{ path: directory, inside: "", below: below.root, isOpaque: false }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const names = new Set<string>();
    for (const { name } of listDirectory(place.path).sort(byName)) {
      yield undefined;
      names.add(keyOf(name));
      const [path, inside] = [joinPath(place.path, name), joinPath(place.inside, name)];
      const stats = lstatSync(path);
      const before = below.find(place.below, name);
      if (isWhiteout(stats)) {
        if (before !== undefined)
          yield* deletion({ path: inside, name, before, parent: place.below }, below, hiddenLinks);
        continue;
      }
      const lower = before?.stats.isDirectory() === true ? below.enter(place.below, name) : [];
      if (stats.isDirectory()) {
        const isEmptied = isOpaque(path, inUserNamespace);
        waiting.push({ path, inside, below: lower, isOpaque: isEmptied });
        if (before?.stats.isDirectory() && hasSameOwnerAndMode(stats, before.stats)) continue;
      }
      const hidden = new Map<number, ChangedAmount>();
      if (before !== undefined && !before.stats.isDirectory()) count(hidden, before, hiddenLinks);
      else if (!stats.isDirectory()) yield* countTree(hidden, lower, below, hiddenLinks);
      const size = sizeOf(stats, linked);
      yield {
        kind: before === undefined ? "added" : "changed",
        path: inside,
        ...described(stats),
        size,
        hidden,
      };
    }
    if (!place.isOpaque) continue;
    for (const { name } of below.list(place.below)) {
      const before = names.has(keyOf(name)) ? undefined : below.find(place.below, name);
      if (before === undefined) continue;
      const path = joinPath(place.inside, name);
      yield* deletion({ path, name, before, parent: place.below }, below, hiddenLinks);
    }
  }
}

interface Place {
  path: Path;
  /** The path in the image. */
  inside: Path;
  /** The same directory in the layers below. */
  below: MergedDirectory;
  /** True if this directory hides everything of the layers below. */
  isOpaque: boolean;
}

/** Hard-linked files of which one name has been counted. */
export type Links = Set<string>;

type Found = NonNullable<ReturnType<LayerTree["find"]>>;

function* deletion(
  { path, name, before, parent }: { path: Path; name: Path; before: Found; parent: MergedDirectory },
  below: LayerTree,
  hiddenLinks: Links,
): Generator<Change | undefined> {
  const hidden = new Map<number, ChangedAmount>();
  if (before.stats.isDirectory()) yield* countTree(hidden, below.enter(parent, name), below, hiddenLinks);
  else count(hidden, before, hiddenLinks);
  yield { kind: "deleted", path, ...described(before.stats), size: 0, hidden };
}

function* countTree(
  amounts: Map<number, ChangedAmount>,
  directory: MergedDirectory,
  tree: LayerTree,
  hiddenLinks: Links,
): Generator<undefined> {
  const waiting = [directory];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const entry of tree.list(next)) {
      yield undefined;
      if (entry.type === "directory") waiting.push(tree.enter(next, entry.name));
      else count(amounts, { layer: entry.layer, stats: lstatSync(entry.path) }, hiddenLinks);
    }
  }
}

function count(
  amounts: Map<number, ChangedAmount>,
  { layer, stats }: Pick<Found, "layer" | "stats">,
  hiddenLinks: Links,
): void {
  const { files, bytes } = amounts.get(layer) ?? { files: 0, bytes: 0 };
  amounts.set(layer, { files: files + 1, bytes: bytes + sizeOf(stats, hiddenLinks, layer) });
}

/** Returns the size to count: the first name of a hard-linked file has its bytes, the others 0. */
function sizeOf(stats: Stats, links: Links, layer?: number): number {
  if (!stats.isFile()) return 0;
  if (stats.nlink > 1) {
    const key = `${layer} ${stats.dev} ${stats.ino}`;
    if (links.has(key)) return 0;
    links.add(key);
  }
  return stats.size;
}

function described(stats: Stats): Pick<Change, "type" | "mode"> {
  return { type: typeOf(stats), mode: stats.mode & 0o7777 };
}

function byName({ name: one }: { name: Path }, { name: other }: { name: Path }): number {
  return keyOf(one) < keyOf(other) ? -1 : 1;
}
