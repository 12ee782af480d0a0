import type { Database } from "bun:sqlite";
import { isAlive } from "../../process-identity.ts";
import { cachesByUse } from "../records/caches.ts";
import { imagesInUse } from "../records/operations.ts";

/** What an engine's records say that there is, for whoever decides what of it may go. Times are milliseconds since the epoch. */
export interface Inventory {
  images: readonly StoredImage[];
  /** The uppermost of each image before those that it stands on. */
  layers: readonly StoredLayer[];
  files: readonly Used[];
  /** Finished ones of processes that have ended: no client of those will ask about them any more. */
  operations: readonly Used[];
  /** Those that no command has at the moment. */
  caches: readonly Used[];
  /** Operations that go on: nobody knows which uploaded files they are about to stage. */
  hasRunning: boolean;
}

/** Something that is removed by its name. */
export interface Used {
  name: string;
  usedAt: number;
}

export interface StoredImage {
  uuid: string;
  layer: number;
  tags: readonly string[];
  /** The time when it was made, or an operation last started from it. */
  usedAt: number;
  /** An operation that goes on needs it. */
  isInUse: boolean;
}

export interface StoredLayer {
  id: number;
  parent: number | null;
  isImported: boolean;
}

export function readInventory(database: Database): Inventory {
  const all = <Row>(query: string) => database.query<Row, []>(query).all();
  const tags = Map.groupBy(
    all<{ tag: string; image: string }>("SELECT tag, image FROM tags ORDER BY tag"),
    ({ image }) => image,
  );
  const inUse = imagesInUse(database);
  const operations = all<{ uuid: string; owner: string; finished_at: number | null }>(
    "SELECT uuid, owner, finished_at FROM operations",
  );
  const living = new Set([...new Set(operations.map(({ owner }) => owner))].filter(isAlive));
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
    files: all<Used>("SELECT sha256 AS name, updated_at AS usedAt FROM files"),
    operations: operations.flatMap(({ uuid, owner, finished_at }) =>
      finished_at === null || living.has(owner) ? [] : { name: uuid, usedAt: finished_at },
    ),
    caches: cachesByUse(database),
    // What a process that is gone ran is over, finished or not.
    hasRunning: operations.some(({ owner, finished_at }) => finished_at === null && living.has(owner)),
  };
}
