import { lstatSync, type Stats } from "node:fs";
import { createPace } from "../../pace.ts";
import type { ChangedAmount, ImageLayerChanges, LayerChange } from "../../service/wire/image.ts";
import { indexOfLayer, unpackedLayers } from "../export/image-layers.ts";
import { layerDirectory } from "../records/layers.ts";
import { LayerTree, type MergedDirectory } from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { hasSameOwnerAndMode } from "../system/owner-and-mode.ts";
import { type EntryType, entryType, joinPath, listDirectory, type Path, pathKey } from "../system/path.ts";
import { isOpaque, isWhiteout } from "../system/xattrs.ts";

/** A layer of the engine, by its number. */
interface NumberedLayer {
  number: number;
}

type Totals = Pick<ImageLayerChanges, "added" | "changed" | "deleted" | "hidden">;

/** Sums up what each layer adds, changes and deletes, and how much of it later layers hide. `layers` are all, the lowest first. */
export async function summarizeChanges<Layer extends NumberedLayer>(
  layers: readonly Layer[],
  state: EngineState,
): Promise<(Omit<Layer, "number"> & Totals)[]> {
  const none = (): ChangedAmount => ({ files: 0, bytes: 0 });
  const summaries = layers.map((layer) => ({
    ...layer,
    added: none(),
    changed: none(),
    deleted: none(),
    hidden: none(),
  }));
  const byNumber = new Map(summaries.map((summary) => [summary.number, summary]));
  const hiddenLinks: Links = new Set();
  for (const [index, summary] of summaries.entries()) {
    await forEachChange(layers, index, { state, hiddenLinks }, (change) => {
      for (const [number, amount] of change.hidden) {
        const of = byNumber.get(number)?.hidden;
        if (of !== undefined) add(of, amount);
      }
      if (change.kind === "deleted") add(summary.deleted, totalOf(change));
      else if (change.type !== "directory") add(summary[change.kind], { files: 1, bytes: change.size });
    });
  }
  return summaries.map(({ number: _, ...summary }) => summary);
}

/** Lists the changes of one layer of an image. `ensure` fetches layers that are not here; it is not called for an unknown layer. */
export async function changesOf(
  state: EngineState,
  { image, layer, limit = maxListedChanges }: { image: string; layer: string; limit: number | undefined },
  ensure: () => Promise<unknown>,
): Promise<{ changes: LayerChange[]; total: number }> {
  const index = indexOfLayer(unpackedLayers(state, image), image, layer);
  await ensure();
  return listChanges(unpackedLayers(state, image), index, limit, state);
}

/** The maximum number of changes in one response, which is held in memory as a whole. */
export const maxListedChanges = 100_000;

/** Lists up to `limit` changes of one layer, the largest first. */
async function listChanges(
  layers: readonly NumberedLayer[],
  index: number,
  limit: number,
  state: EngineState,
): Promise<{ changes: LayerChange[]; total: number }> {
  const changes: LayerChange[] = [];
  const walk = { state, hiddenLinks: new Set<string>() };
  await forEachChange(layers, index, walk, (change) => changes.push(describe(change)));
  const weight = ({ size, hidden }: LayerChange) => Math.max(size, hidden.bytes);
  changes.sort((one, other) => weight(other) - weight(one) || (one.path < other.path ? -1 : 1));
  return { changes: changes.slice(0, limit), total: changes.length };
}

async function forEachChange(
  layers: readonly NumberedLayer[],
  index: number,
  { state, hiddenLinks }: { state: EngineState; hiddenLinks: Links },
  take: (change: Change) => void,
): Promise<void> {
  const { layout, inUserNamespace, closing } = state;
  const [layer, ...below] = layers
    .slice(0, index + 1)
    .reverse()
    .map(({ number }) => ({ layer: number, path: layerDirectory(layout, number) }));
  if (layer === undefined) return;
  const pace = createPace(closing);
  const tree = new LayerTree(below, inUserNamespace);
  for (const change of walkChanges(layer.path, tree, { inUserNamespace, hiddenLinks })) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    if (change !== undefined) take(change);
  }
}

function describe(change: Change): LayerChange {
  const { kind, path, type, mode, size } = change;
  return { kind, path: path.toString(), type, mode, size, hidden: totalOf(change) };
}

function totalOf({ hidden }: Change): ChangedAmount {
  const total = { files: 0, bytes: 0 };
  for (const amount of hidden.values()) add(total, amount);
  return total;
}

function add(to: ChangedAmount, { files, bytes }: ChangedAmount): void {
  to.files += files;
  to.bytes += bytes;
}

/** A layer's change to one path. */
interface Change {
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
function* walkChanges(
  directory: Path,
  below: LayerTree,
  { inUserNamespace, hiddenLinks }: { inUserNamespace: boolean; hiddenLinks: Links },
): Generator<Change | undefined> {
  const linked: Links = new Set();
  const waiting: LayerSubdirectory[] = [{ path: directory, inside: "", below: below.root, isOpaque: false }];
  function* changeOf(place: LayerSubdirectory, name: Path): Generator<Change | undefined> {
    const [path, inside] = [joinPath(place.path, name), joinPath(place.inside, name)];
    const stats = lstatSync(path);
    const before = below.find(place.below, name);
    if (isWhiteout(stats)) {
      if (before !== undefined)
        yield* deletion({ path: inside, name, before, parent: place.below }, below, hiddenLinks);
      return;
    }
    const lower = before?.stats.isDirectory() === true ? below.enter(place.below, name) : [];
    if (stats.isDirectory()) {
      const isEmptied = isOpaque(path, inUserNamespace);
      waiting.push({ path, inside, below: lower, isOpaque: isEmptied });
      if (before?.stats.isDirectory() && hasSameOwnerAndMode(stats, before.stats)) return;
    }
    const hidden = new Map<number, ChangedAmount>();
    if (before !== undefined && !before.stats.isDirectory()) count(hidden, before, hiddenLinks);
    else if (!stats.isDirectory()) yield* countTree(hidden, lower, below, hiddenLinks);
    const size = sizeOf(stats, linked);
    const kind = before === undefined ? "added" : "changed";
    yield { kind, path: inside, ...described(stats), size, hidden };
  }
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const names = new Set<string>();
    for (const { name } of listDirectory(place.path).sort(byName)) {
      yield undefined;
      names.add(pathKey(name));
      yield* changeOf(place, name);
    }
    if (!place.isOpaque) continue;
    for (const { name } of below.list(place.below)) {
      const before = names.has(pathKey(name)) ? undefined : below.find(place.below, name);
      if (before === undefined) continue;
      const path = joinPath(place.inside, name);
      yield* deletion({ path, name, before, parent: place.below }, below, hiddenLinks);
    }
  }
}

/** A directory of the layer whose changes are listed. */
interface LayerSubdirectory {
  path: Path;
  /** The path in the image. */
  inside: Path;
  /** The same directory in the layers below. */
  below: MergedDirectory;
  /** True if this directory hides everything of the layers below. */
  isOpaque: boolean;
}

/** Hard-linked files of which one name has been counted. */
type Links = Set<string>;

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
  return { type: entryType(stats), mode: stats.mode & 0o7777 };
}

function byName({ name: one }: { name: Path }, { name: other }: { name: Path }): number {
  return pathKey(one) < pathKey(other) ? -1 : 1;
}
