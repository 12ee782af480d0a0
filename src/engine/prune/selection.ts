import { existsSync } from "node:fs";
import { isSha256 } from "../../sha256.ts";
import type { Layout } from "../layout.ts";
import { cacheDirectory } from "../records/caches.ts";
import { eventPath } from "../records/event-files.ts";
import { filePath } from "../records/files.ts";
import { blobsDirectory, createBlobSizes } from "../records/imported-blobs.ts";
import { createFreedSizes, createLayerSizes } from "../records/layer-sizes.ts";
import { layerDirectory } from "../records/layers.ts";
import { isOperationId } from "../records/operations.ts";
import type { Records } from "../records/records.ts";
import { diskUsage } from "../system/disk.ts";
import type { Inventory, PrunableItem, StoredImage } from "./inventory.ts";

/** A session's use of an image that one of its branches contains. */
export interface SessionUse {
  session: string;
  /** Milliseconds since the epoch. */
  usedAt: number;
  /** False if a later build of the same Dockerfile has another layer in its place. */
  isCurrent: boolean;
  /** True if a branch that people or agents work on leads to it: no build could make it again. */
  holdsWork?: boolean;
}

export interface PruneSelection {
  /** Uses by the image's UUID. */
  uses: ReadonlyMap<string, SessionUse>;
  /** True to remove tagged images and those of sessions too: everything that no operation needs. */
  all: boolean;
  /** True to remove images of sessions too. */
  sessions: boolean;
  /** True to remove the blobs of imported layers that stay. */
  archives?: boolean | undefined;
  /** Milliseconds since the epoch: what was used later stays. */
  usedBefore?: number | undefined;
  /** Milliseconds since the epoch: records of operations that ended later stay. */
  logsBefore: number;
  /** Files, caches and images of sessions are removed, the least recently used first, until no more than these bytes are left. */
  keepBytes?: number | undefined;
  /**
   * Set if the prune only makes room. Then only the least recently used is removed, needed or not, until no more than allowed is
   * left. Images with a tag stay, and those that no build could make again, and the results of recent builds.
   */
  makeRoom?: RoomRequest | undefined;
}

export interface RoomRequest {
  /** Returns how many of the bytes that the engine uses may stay. */
  bytesToKeep: (usedBytes: number) => number;
  /** Milliseconds since the epoch: results that builds have used since then stay, since they may be about to be run or pushed. */
  keepsCurrentSince: number;
}

/** The names of what is removed. */
export interface Selected {
  images: string[];
  /** The uppermost first. */
  layers: number[];
  files: string[];
  operations: string[];
  caches: string[];
  /** Layers that stay without the blobs that they were imported from. */
  archives: number[];
}

/** Bytes of files. */
export interface Sizes {
  /** Returns a function for the bytes that the removal of a layer frees, after those that it was called for before. */
  createFreed(): (layer: number) => number;
  file(sha256: string): number;
  cache(name: string): number;
  operation(uuid: string): number;
  /** Bytes of all layers, files, caches and event logs. */
  total(): number;
}

/** Selects what is removed. */
export function select(inventory: Inventory, selection: PruneSelection, sizes: Sizes): Selected {
  const { uses, all, makeRoom, usedBefore = Number.POSITIVE_INFINITY } = selection;
  const isOld = ({ usedAt }: { usedAt: number }) => usedAt < usedBefore;
  const layers = new LayerUses(inventory);
  const isSpared = (use: SessionUse, { keepsCurrentSince }: RoomRequest) =>
    use.holdsWork === true || (use.isCurrent && use.usedAt >= keepsCurrentSince);
  const canGo = ({ uuid, isInUse, tags }: StoredImage) => {
    const use = uses.get(uuid);
    if (isInUse || (!all && tags.length > 0)) return false;
    return makeRoom === undefined || use === undefined || !isSpared(use, makeRoom);
  };
  const used = inventory.images.map((image) => ({ ...image, usedAt: lastUse(image, uses) }));
  const images = used.filter(canGo);
  const old = images.filter(isOld);
  const gone = new Set<StoredImage>();
  const remove = (image: StoredImage) => {
    gone.add(image);
    return layers.remove(image);
  };
  /** Removes images that share one layer. If something else needs the layer, they stay, so that builds still find them. */
  const removeLayer = (group: readonly StoredImage[]) =>
    layers.isOnlyOf(group) ? group.flatMap((image) => remove(image)) : [];
  const byLayer = (chosen: (image: StoredImage) => boolean) =>
    Map.groupBy(
      layers.uppermostFirst(old.filter((image) => !gone.has(image) && chosen(image))),
      ({ layer }) => layer,
    );
  if (makeRoom === undefined) {
    for (const image of old) if (all || selection.sessions || !uses.has(image.uuid)) remove(image);
    const replaced = byLayer((image) => uses.get(image.uuid)?.isCurrent === false);
    for (const group of replaced.values()) removeLayer(group);
  }

  /** Layers whose blobs nothing has used lately, as an import or a build on them does. */
  const oldArchives = () => {
    const times = lastUsesOf(
      inventory,
      used.map((image) => (image.isInUse ? { ...image, usedAt: Number.POSITIVE_INFINITY } : image)),
    );
    return inventory.layers
      .filter(({ id, isImported }) => isImported && isOld({ usedAt: times.get(id) ?? 0 }))
      .map(({ id }) => id);
  };
  const files = inventory.hasRunning ? [] : inventory.files.filter(isOld);
  const caches = inventory.caches.filter(isOld);
  const operations = inventory.operations.filter(({ usedAt }) => all || usedAt < selection.logsBefore);
  const selected = (
    chosenFiles: readonly PrunableItem[],
    chosenCaches: readonly PrunableItem[],
  ): Selected => ({
    images: Array.from(gone, ({ uuid }) => uuid),
    layers: inventory.layers.filter(({ id }) => layers.isUnused(id)).map(({ id }) => id),
    files: namesOf(chosenFiles),
    operations: namesOf(operations),
    caches: namesOf(chosenCaches),
    archives: selection.archives === true ? oldArchives().filter((id) => !layers.isUnused(id)) : [],
  });
  const usedBytes = makeRoom === undefined && selection.keepBytes === undefined ? 0 : sizes.total();
  const keepBytes = makeRoom?.bytesToKeep(usedBytes) ?? selection.keepBytes;
  if (keepBytes === undefined) return selected(files, caches);

  const freed = sizes.createFreed();
  const taken = { files: [] as PrunableItem[], caches: [] as PrunableItem[] };
  const takeable = (items: readonly PrunableItem[], into: PrunableItem[], sizeOf: (name: string) => number) =>
    items.map((item) => ({
      usedAt: item.usedAt,
      take() {
        into.push(item);
        return sizeOf(item.name);
      },
    }));
  let left = usedBytes - sum(operations, ({ name }) => sizes.operation(name)) - sum(layers.unused(), freed);
  const lastUses = lastUsesOf(inventory, images);
  const candidates = [
    ...takeable(files, taken.files, sizes.file),
    ...takeable(caches, taken.caches, sizes.cache),
    // If images were used at the same time, a build's last steps are removed first.
    ...Array.from(
      byLayer((image) => makeRoom !== undefined || uses.get(image.uuid)?.isCurrent === true),
      ([layer, group]) => ({
        usedAt: lastUses.get(layer) ?? 0,
        take: () => sum(removeLayer(group), freed),
      }),
    ),
  ].sort((one, other) => one.usedAt - other.usedAt);
  for (const { take } of candidates) {
    if (left <= keepBytes) break;
    left -= take();
  }
  return selected(taken.files, taken.caches);
}

/** Returns when an operation last started from an image, or a session used it. */
function lastUse({ uuid, usedAt }: StoredImage, uses: PruneSelection["uses"]): number {
  return Math.max(usedAt, uses.get(uuid)?.usedAt ?? 0);
}

/** Returns when each layer was last used: what is built on a layer uses it, too. */
function lastUsesOf(
  { layers }: Inventory,
  images: readonly Pick<StoredImage, "layer" | "usedAt">[],
): Map<number, number> {
  const times = new Map<number, number>();
  const note = (layer: number, usedAt: number) => times.set(layer, Math.max(usedAt, times.get(layer) ?? 0));
  for (const { layer, usedAt } of images) note(layer, usedAt);
  for (const { id, parent } of layers) if (parent !== null) note(parent, times.get(id) ?? 0);
  return times;
}

function namesOf(things: readonly PrunableItem[]): string[] {
  return things.map(({ name }) => name);
}

function sum<Item>(items: Iterable<Item>, sizeOf: (item: Item) => number): number {
  let total = 0;
  for (const item of items) total += sizeOf(item);
  return total;
}

/** Tracks which layers are still in use while images are removed one by one. */
class LayerUses {
  readonly #parents: Map<number, number | null>;
  /** The number of images and layers directly on top of each layer. */
  readonly #counts = new Map<number, number>();
  readonly #unused: number[] = [];
  readonly #unusedSet = new Set<number>();

  constructor({ layers, images }: Pick<Inventory, "layers" | "images">) {
    this.#parents = new Map(layers.map(({ id, parent }) => [id, parent]));
    for (const { layer } of images) this.#count(layer, 1);
    for (const { parent } of layers) if (parent !== null) this.#count(parent, 1);
    // The uppermost come first: an unused layer takes along parents that only it needs.
    for (const { id } of layers) if (!this.isUnused(id) && this.#of(id) === 0) this.#drop(id);
  }

  /** Removes an image, and returns the layers that become unused. */
  remove({ layer }: StoredImage): number[] {
    const before = this.#unused.length;
    if (this.#count(layer, -1) === 0) this.#drop(layer);
    return this.#unused.slice(before);
  }

  /** True if nothing but these images, which share one layer, is directly on top of that layer. */
  isOnlyOf(images: readonly StoredImage[]): boolean {
    return this.#of(images[0]?.layer ?? 0) <= images.length;
  }

  isUnused(id: number): boolean {
    return this.#unusedSet.has(id);
  }

  unused(): readonly number[] {
    return this.#unused;
  }

  uppermostFirst<Image extends StoredImage>(images: readonly Image[]): Image[] {
    const order = new Map([...this.#parents.keys()].map((id, index) => [id, index]));
    return images.toSorted((one, other) => (order.get(one.layer) ?? 0) - (order.get(other.layer) ?? 0));
  }

  #of(id: number): number {
    return this.#counts.get(id) ?? 0;
  }

  #count(id: number, by: number): number {
    const count = this.#of(id) + by;
    this.#counts.set(id, count);
    return count;
  }

  #drop(top: number): void {
    for (let id: number | null = top; id !== null && this.#parents.has(id); ) {
      this.#unused.push(id);
      this.#unusedSet.add(id);
      const parent: number | null = this.#parents.get(id) ?? null;
      if (parent === null || this.#count(parent, -1) > 0) return;
      id = parent;
    }
  }
}

export function createSizes(records: Records, inventory: Inventory): Sizes {
  const { layout } = records;
  const sizes: Sizes = {
    createFreed() {
      const [freed, blobBytes] = [createFreedSizes(records), createBlobSizes(layout)];
      return (id) => freed(id) + blobBytes(id);
    },
    file: (sha256) => diskUsage(filePaths(layout, [sha256])),
    cache: (name) => diskUsage(cacheDirectory(layout, name)),
    operation: (uuid) => diskUsage(eventPaths(layout, [uuid])),
    total() {
      const [{ ownSizeOf }, blobBytes] = [createLayerSizes(records), createBlobSizes(layout)];
      return [
        ...inventory.layers.map(({ id }) => ownSizeOf(id) + blobBytes(id)),
        ...[layout.files, layout.caches, layout.events].map((path) => diskUsage(path)),
      ].reduce((sum, bytes) => sum + bytes, 0);
    },
  };
  return sizes;
}

/** Returns the paths of everything selected. Leaves out malformed names, which can't be on disk. */
export function selectedPaths(layout: Layout, { layers, files, operations, caches, archives }: Selected) {
  return {
    // Layers' directories, and the blobs of imported ones.
    layers: layers.flatMap((id) => [layerDirectory(layout, id), blobsDirectory(layout, id)]),
    files: filePaths(layout, files),
    operations: eventPaths(layout, operations),
    caches: caches.map((name) => cacheDirectory(layout, name)),
    archives: archives.map((id) => blobsDirectory(layout, id)).filter((path) => existsSync(path)),
  };
}

export function filePaths(layout: Layout, files: readonly string[]): string[] {
  return files.filter(isSha256).map((sha256) => filePath(layout, sha256));
}

export function eventPaths(layout: Layout, operations: readonly string[]): string[] {
  return operations.filter(isOperationId).map((uuid) => eventPath(layout, uuid));
}
