import { withEngineDirectory } from "../engine-directory.ts";
import { cachePaths } from "../records/caches.ts";
import { createBlobSizes } from "../records/imported-blobs.ts";
import { createFreedSizes, createLayerSizes, layersToMeasure } from "../records/layer-sizes.ts";
import { layerDirectory } from "../records/layers.ts";
import { createDiskUsage, diskUsage } from "../system/disk.ts";
import { type Inventory, readInventory } from "./inventory.ts";
import type { CountAndBytes } from "./prune.ts";
import { createSizes, eventPaths, filePaths, type PruneSelection, select } from "./selection.ts";

/** The contents of an engine's directory. Sizes are bytes of files. */
export interface EngineUsage {
  images: { count: number; tagged: number };
  layers: StorageUsage;
  /** The same layers by owner; each layer has one owner. */
  owners: LayerOwner[];
  /** The blobs of imported layers. */
  blobs: StorageUsage;
  files: StorageUsage;
  /** Finished operations, with their event logs. */
  operations: StorageUsage;
  /** The directories of cache mounts. */
  caches: StorageUsage;
}

interface StorageUsage extends CountAndBytes {
  /** Bytes that a prune with this selection would free. */
  reclaimableBytes: number;
}

export interface LayerOwner extends StorageUsage {
  /** `tagged` is for layers of images that have a tag, but no session here. */
  kind: "imported" | "session" | "tagged" | "unused";
  /** The session's key; empty for another kind. */
  name: string;
}

/** Measures an engine's directory. Other processes may use it meanwhile. */
export function measureUsage(directory: string, selection: PruneSelection): Promise<EngineUsage> {
  return withEngineDirectory(directory, (database, layout) => {
    const records = { database, layout };
    const inventory = readInventory({ database, layout });
    const { images } = inventory;
    const sizes = createSizes(records, inventory);
    const selected = select(inventory, selection, sizes);
    const operations = database
      .query<{ uuid: string }, []>("SELECT uuid FROM operations WHERE finished_at IS NOT NULL")
      .all()
      .map(({ uuid }) => uuid);
    const files = inventory.files.map(({ name }) => name);
    const caches = cachePaths(database, layout);
    const linked = layersToMeasure(database);
    const freed = createFreedSizes(records);
    const { ownSizeOf } = createLayerSizes(records);
    const blobBytes = createBlobSizes(layout);
    const measureLinked = createDiskUsage();
    const sizeOfLayer = (id: number) =>
      linked.has(id) ? measureLinked(layerDirectory(layout, id)) : ownSizeOf(id);
    const removed = new Set(selected.layers);
    const layers = inventory.layers.map(({ id }) => {
      const bytes = sizeOfLayer(id);
      const isRemoved = removed.has(id);
      const reclaimableBytes = !isRemoved ? 0 : linked.has(id) ? bytes : freed(id);
      return { id, bytes, reclaimableBytes, isRemoved, blobs: blobBytes(id) };
    });
    const withBlobs = layers.filter(({ blobs }) => blobs > 0);
    return {
      images: { count: images.length, tagged: images.filter(({ tags }) => tags.length > 0).length },
      layers: addUp(layers),
      owners: groupByOwner(layers, ownersOfLayers(inventory, selection)),
      blobs: addUp(
        withBlobs.map(({ blobs, isRemoved }) => ({ bytes: blobs, reclaimableBytes: isRemoved ? blobs : 0 })),
      ),
      files: {
        ...{ count: files.length, bytes: diskUsage(filePaths(layout, files)) },
        reclaimableBytes: diskUsage(filePaths(layout, selected.files)),
      },
      operations: {
        ...{ count: operations.length, bytes: diskUsage(eventPaths(layout, operations)) },
        reclaimableBytes: diskUsage(eventPaths(layout, selected.operations)),
      },
      caches: {
        ...{ count: caches.length, bytes: diskUsage(caches) },
        reclaimableBytes: selected.caches.reduce((sum, name) => sum + sizes.cache(name), 0),
      },
    };
  });
}

interface MeasuredLayer {
  bytes: number;
  reclaimableBytes: number;
}

function addUp(layers: readonly MeasuredLayer[]): StorageUsage {
  const sum = (field: keyof MeasuredLayer) => layers.reduce((total, layer) => total + layer[field], 0);
  return { count: layers.length, bytes: sum("bytes"), reclaimableBytes: sum("reclaimableBytes") };
}

type Owner = Pick<LayerOwner, "kind" | "name">;

/** Returns each layer's owner: `imported`, or the session or tag of an image of it, or else the owner of a layer above it. */
function ownersOfLayers(
  { layers, images }: Inventory,
  { uses }: Pick<PruneSelection, "uses">,
): Map<number, Owner> {
  const owners = new Map<number, Owner>();
  const imagesOf = Map.groupBy(images, ({ layer }) => layer);
  for (const { id, parent, isImported } of layers) {
    const own = imagesOf.get(id) ?? [];
    const session = own.flatMap(({ uuid }) => uses.get(uuid)?.session ?? [])[0];
    const owner: Owner = isImported
      ? { kind: "imported", name: "" }
      : session !== undefined
        ? { kind: "session", name: session }
        : own.some(({ tags }) => tags.length > 0)
          ? { kind: "tagged", name: "" }
          : (owners.get(id) ?? { kind: "unused", name: "" });
    owners.set(id, owner);
    if (parent !== null && !owners.has(parent)) owners.set(parent, owner);
  }
  return owners;
}

function groupByOwner(
  layers: readonly (MeasuredLayer & { id: number })[],
  owners: ReadonlyMap<number, Owner>,
): LayerOwner[] {
  const kinds: readonly Owner["kind"][] = ["imported", "tagged", "session", "unused"];
  const groups = Map.groupBy(layers, ({ id }) => {
    const { kind, name } = owners.get(id) ?? { kind: "unused", name: "" };
    return `${kind} ${name}`;
  });
  return [...groups]
    .map(([key, own]): LayerOwner => {
      const [kind, name = ""] = key.split(/ (.*)/s);
      return { kind: kind as Owner["kind"], name, ...addUp(own) };
    })
    .sort((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind) || other.bytes - one.bytes);
}
