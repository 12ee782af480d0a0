import { isOpen } from "../layout.ts";
import { cachesByUse } from "../records/caches.ts";
import { imagesInUse } from "../records/operations.ts";
import type { Records } from "../records/records.ts";

/** The contents of an engine according to its records, from which a prune selects. Times are milliseconds since the epoch. */
export interface Inventory {
  images: readonly StoredImage[];
  /** Sorted so that each layer comes before its parent. */
  layers: readonly StoredLayer[];
  files: readonly PrunableItem[];
  /** Finished operations of processes that have ended: no client will ask about them again. */
  operations: readonly PrunableItem[];
  /** Caches that no command is using. */
  caches: readonly PrunableItem[];
  /** True if operations are running: a client may be about to use any uploaded file. */
  hasRunning: boolean;
}

/** A file, operation or cache, which is removed by its name. */
export interface PrunableItem {
  name: string;
  usedAt: number;
}

export interface StoredImage {
  uuid: string;
  layer: number;
  tags: readonly string[];
  /** The time when it was made, or when an operation last started from it. */
  usedAt: number;
  /** True if a running operation needs it. */
  isInUse: boolean;
}

interface StoredLayer {
  id: number;
  parent: number | null;
  isImported: boolean;
}

export function readInventory(records: Records): Inventory {
  const { database, layout } = records;
  const all = <Row>(query: string) => database.query<Row, []>(query).all();
  const tags = Map.groupBy(
    all<{ tag: string; image: string }>("SELECT tag, image FROM all_tags ORDER BY tag"),
    ({ image }) => image,
  );
  const inUse = imagesInUse(records);
  const operations = all<{ uuid: string; owner: string; finished_at: number | null }>(
    "SELECT uuid, owner, finished_at FROM operations",
  );
  const owners = new Set(operations.map(({ owner }) => owner));
  const living = new Set([...owners].filter((owner) => isOpen(layout, owner)));
  return {
    images: all<{ uuid: string; layer: number; used_at: number }>(
      `SELECT uuid, layer, max(created_at, ifnull(started_at, 0)) AS used_at FROM images
       LEFT JOIN (SELECT start_image, max(created_at) AS started_at FROM operations GROUP BY start_image)
         ON start_image = uuid`,
    ).map(({ uuid, layer, used_at: usedAt }) => ({
      ...{ uuid, layer, usedAt, isInUse: inUse.has(uuid) },
      tags: (tags.get(uuid) ?? []).map(({ tag }) => tag),
    })),
    layers: all<{ id: number; parent: number | null; content: string | null }>(
      "SELECT id, parent, content FROM layers ORDER BY depth DESC",
    ).map(({ id, parent, content }) => ({ id, parent, isImported: content !== null || parent === null })),
    files: all<PrunableItem>("SELECT sha256 AS name, updated_at AS usedAt FROM files"),
    operations: operations.flatMap(({ uuid, owner, finished_at }) =>
      finished_at === null || living.has(owner) ? [] : { name: uuid, usedAt: finished_at },
    ),
    caches: cachesByUse(records),
    // An operation is over if its process is gone, even if its record is not finished.
    hasRunning: operations.some(({ owner, finished_at }) => finished_at === null && living.has(owner)),
  };
}
