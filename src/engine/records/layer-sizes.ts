import type { Database } from "bun:sqlite";
import { diskUsage } from "../system/disk.ts";
import { isAbsent } from "./absent-layers.ts";
import { layerDirectory, maxDepth } from "./layers.ts";
import type { Records } from "./records.ts";

/**
 * Creates a function that returns the bytes of all layers of an image. A layer never changes, so it is measured once. One query
 * reads all records: thousands of images may have hundreds of layers each, most of them shared.
 */
export function createImageSizes(records: Records): (layer: number) => number {
  const layersDown = createLayerWalk(records.database);
  const { sizeOf } = createLayerSizes(records);
  const totals = new Map<number, number>();
  return (layer) => {
    const above: number[] = [];
    let bytes = 0;
    for (const id of layersDown(layer)) {
      const below = totals.get(id);
      if (below !== undefined) {
        bytes = below;
        break;
      }
      above.push(id);
    }
    for (const id of above.reverse()) {
      bytes += sizeOf(id);
      totals.set(id, bytes);
    }
    return bytes;
  };
}

/** Creates a function that yields a layer and those below it, the uppermost first. It ends even if edited records form a loop. */
function createLayerWalk(database: Database): (layer: number) => Generator<number> {
  const rows = database.query<{ id: number; parent: number | null }, []>("SELECT id, parent FROM layers");
  const parents = new Map(rows.all().map(({ id, parent }) => [id, parent]));
  return function* (layer) {
    let id: number | null | undefined = layer;
    for (let depth = 0; depth < maxDepth && id != null; depth++) {
      yield id;
      id = parents.get(id);
    }
  };
}

/** Returns the bytes of the files of one layer; 0 for an absent one. */
export function layerSize({ database, layout }: Records, id: number): number {
  const row = database
    .query<{ size: number | null }, [number]>("SELECT size FROM layers WHERE id = ?")
    .get(id);
  if (row?.size != null) return row.size;
  if (isAbsent(database, id)) return 0;
  const size = diskUsage(layerDirectory(layout, id));
  try {
    database.query<undefined, [number, number]>("UPDATE layers SET size = ? WHERE id = ?").run(size, id);
  } catch {
    // On a full or read-only disk, the layer is measured again when its size is needed.
  }
  return size;
}

interface LayerSizes {
  /** Returns the bytes of the files of a layer; 0 for an absent one. */
  sizeOf(id: number): number;
  /** Returns the bytes of a layer, without those of files that it shares with a later version. */
  ownSizeOf(id: number): number;
}

/** Reads the sizes of all layers with one query: a query each, with a lock each, would take as long as the rest of a list. */
export function createLayerSizes(records: Records): LayerSizes {
  const rows = records.database
    .query<{ id: number; size: number | null; shared: number | null }, []>(
      "SELECT id, size, heir_bytes AS shared FROM layers",
    )
    .all();
  const known = new Map(rows.map((row) => [row.id, row]));
  const sizeOf = (id: number) => known.get(id)?.size ?? layerSize(records, id);
  return { sizeOf, ownSizeOf: (id) => Math.max(0, sizeOf(id) - (known.get(id)?.shared ?? 0)) };
}

/** Returns the layers that share an unknown number of bytes with others, and all versions of them. */
export function layersToMeasure(database: Database): Set<number> {
  const rows = database
    .query<{ id: number }, []>(
      `WITH RECURSIVE measured (id) AS (
         SELECT id FROM layers WHERE has_links = 1
         UNION SELECT layers.id FROM layers JOIN measured ON layers.heir = measured.id
         UNION SELECT layers.heir FROM layers JOIN measured ON layers.id = measured.id WHERE layers.heir IS NOT NULL
       ) SELECT id FROM measured`,
    )
    .all();
  return new Set(rows.map(({ id }) => id));
}

/**
 * Creates a function that returns the bytes that the removal of a layer frees. Call it in the order of removal: each call assumes that the
 * layers of earlier calls are gone, since what versions of a layer share goes with the last of them.
 */
export function createFreedSizes(records: Records): (id: number) => number {
  const rows = records.database
    .query<{ id: number; heir: number; bytes: number }, []>(
      "SELECT id, heir, heir_bytes AS bytes FROM layers WHERE heir IS NOT NULL",
    )
    .all();
  const heirs = new Map(rows.map((row) => [row.id, row]));
  const earlier = new Map(rows.map((row) => [row.heir, row]));
  const { sizeOf } = createLayerSizes(records);
  return (id) => {
    const [before, after] = [earlier.get(id), heirs.get(id)];
    const shared = [before?.bytes ?? 0, after?.bytes ?? 0];
    heirs.delete(id);
    earlier.delete(id);
    if (before !== undefined) heirs.delete(before.id);
    if (after !== undefined) earlier.delete(after.heir);
    // The trigger of the table `layers` changes the records in the same way when a layer is removed.
    if (before !== undefined && after !== undefined) {
      const row = { id: before.id, heir: after.heir, bytes: Math.min(...shared) };
      heirs.set(row.id, row);
      earlier.set(row.heir, row);
    }
    return Math.max(0, sizeOf(id) - Math.max(...shared));
  };
}

/** Creates a function that returns the layers of an image that no other image with a tag has: those that only it needs. */
export function createOwnLayers({ database }: Pick<Records, "database">): (image: OwnedImage) => number[] {
  const layersDown = createLayerWalk(database);
  /** The only tagged image that has a layer; `null` if several have it. A layer below has all images of those above it, too. */
  const users = new Map<number, string | null>();
  const tagged = database
    .query<OwnedImage, []>("SELECT DISTINCT uuid, layer FROM images JOIN all_tags ON image = uuid")
    .all();
  for (const { uuid, layer } of tagged) {
    for (const id of layersDown(layer)) {
      const user = users.get(id);
      if (user === null) break;
      users.set(id, user === undefined || user === uuid ? uuid : null);
    }
  }
  return ({ uuid, layer }) => {
    const own: number[] = [];
    for (const id of layersDown(layer)) {
      const user = users.get(id);
      if (user !== undefined && user !== uuid) break;
      own.push(id);
    }
    return own;
  };
}

interface OwnedImage {
  uuid: string;
  layer: number;
}
