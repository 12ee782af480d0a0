import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../database.ts";
import { isAlive } from "../process-identity.ts";
import { withEngineDirectory } from "./engine-directory.ts";
import type { Layout } from "./layout.ts";
import { cacheDirectory, cachePaths, unusedCaches } from "./records/caches.ts";
import { filePath, isFileName } from "./records/files.ts";
import { blobsDirectory } from "./records/imported-blobs.ts";
import { layerDirectory } from "./records/layers.ts";
import { imagesInUse, isOperationId } from "./records/operations.ts";
import { diskUsage, freedBytes } from "./system/disk-usage.ts";

/** What an engine's directory holds. Sizes are bytes on disk. */
interface EngineUsage {
  images: { count: number; tagged: number };
  layers: { count: number; bytes: number };
  files: { count: number; bytes: number };
  /** Finished ones, with their event logs. */
  operations: { count: number; bytes: number };
  /** Of mounts of type cache. */
  caches: { count: number; bytes: number };
}

/** What of it would go, or has gone. */
export interface PrunePlan {
  images: { uuid: string; tags: string[] }[];
  layers: { count: number; bytes: number };
  files: { count: number; bytes: number };
  operations: { count: number; bytes: number };
  caches: { count: number; bytes: number };
}

interface PruneSelection {
  /** UUIDs of images that stay: those that a session's branch names. */
  keep: ReadonlySet<string>;
  /** Tagged images go too. */
  all: boolean;
}

/** Opens the directory for as long as it takes; other processes may go on using it. */
export function measureUsage(directory: string): Promise<EngineUsage> {
  return withEngineDirectory(directory, (database, layout) => {
    const count = (table: string) =>
      database.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${table}`).get()?.count ?? 0;
    const layers = column<number>(database, "SELECT id AS value FROM layers");
    const files = column<string>(database, "SELECT sha256 AS value FROM files");
    const operations = column<string>(
      database,
      "SELECT uuid AS value FROM operations WHERE finished_at IS NOT NULL",
    );
    return {
      images: { count: count("images"), tagged: count("images WHERE uuid IN (SELECT image FROM tags)") },
      layers: { count: layers.length, bytes: diskUsage(layerPaths(layout, layers)) },
      files: { count: files.length, bytes: diskUsage(filePaths(layout, files)) },
      operations: {
        count: operations.length,
        bytes: diskUsage(eventPaths(layout, operations)),
      },
      caches: totalOf(cachePaths(database, layout), diskUsage),
    };
  });
}

/** What `prune` would remove at this moment. */
export function planPrune(directory: string, selection: PruneSelection): Promise<PrunePlan> {
  return withEngineDirectory(directory, (database, layout) => measure(layout, select(database, selection)));
}

/**
 * Removes images without a tag that nothing keeps, layers that no image is left of, all uploaded files, and what is recorded
 * of operations of processes that have ended, and caches that no command has. What a running operation started from stays. Returns
 * what went.
 */
export function prune(directory: string, selection: PruneSelection): Promise<PrunePlan> {
  return withEngineDirectory(directory, async (database, layout) => {
    const removed = inTransaction(database, () => {
      // Records that were damaged may point in any direction.
      database.run("PRAGMA defer_foreign_keys = ON");
      const selected = select(database, selection);
      const remove = (table: string, key: string, values: readonly (string | number)[]) => {
        const statement = database.query(`DELETE FROM ${table} WHERE ${key} = ?`);
        for (const value of values) statement.run(value);
      };
      remove("images", "uuid", selected.images);
      // A layer before the one that it stands on.
      remove("layers", "id", selected.layers);
      remove("files", "sha256", selected.files);
      remove("operations", "uuid", selected.operations);
      remove("caches", "name", selected.caches);
      return selected;
    });
    const plan = measure(layout, removed);
    // Only now: what is removed but still recorded would be a loss, the reverse is a leftover that the next start takes away.
    for (const path of layerPaths(layout, removed.layers)) await rm(path, { recursive: true, force: true });
    for (const path of eventPaths(layout, removed.operations)) rmSync(path, { force: true });
    for (const name of removed.caches)
      await rm(cacheDirectory(layout, name), { recursive: true, force: true });
    inTransaction(database, () => {
      const kept = new Set(column<string>(database, "SELECT sha256 AS value FROM files"));
      const doomed = removed.files.filter((sha256) => !kept.has(sha256));
      for (const path of filePaths(layout, doomed)) rmSync(path, { recursive: true, force: true });
    });
    return plan;
  });
}

interface Selected {
  images: string[];
  tags: ReadonlyMap<string, string[]>;
  layers: number[];
  files: string[];
  operations: string[];
  /** Names. */
  caches: string[];
}

function select(database: Database, selection: PruneSelection): Selected {
  const operations = database
    .query<{ uuid: string; owner: string; start_image: string | null; finished_at: number | null }, []>(
      "SELECT uuid, owner, start_image, finished_at FROM operations",
    )
    .all();
  // What a process that is gone ran is over, finished or not, and no client of it will ask any more.
  const living = new Set([...new Set(operations.map(({ owner }) => owner))].filter(isAlive));
  const running = operations.filter(({ owner, finished_at }) => finished_at === null && living.has(owner));
  const inUse = imagesInUse(database);
  const tags = tagsByImage(database);
  const images = column<string>(database, "SELECT uuid AS value FROM images").filter(
    (uuid) => !inUse.has(uuid) && !selection.keep.has(uuid) && (selection.all || !tags.has(uuid)),
  );
  return {
    images,
    tags,
    layers: unusedLayers(database, new Set(images)),
    // Nobody knows which of them an operation that has just begun is about to stage.
    files: running.length > 0 ? [] : column<string>(database, "SELECT sha256 AS value FROM files"),
    operations: operations
      .filter(({ owner, finished_at }) => finished_at !== null && !living.has(owner))
      .map(({ uuid }) => uuid),
    caches: unusedCaches(database),
  };
}

function tagsByImage(database: Database): Map<string, string[]> {
  const tags = new Map<string, string[]>();
  const rows = database
    .query<{ tag: string; image: string }, []>("SELECT tag, image FROM tags ORDER BY tag")
    .all();
  for (const { tag, image } of rows) tags.set(image, [...(tags.get(image) ?? []), tag]);
  return tags;
}

/** Those that no image outside of `removed` stands on, the uppermost first. */
function unusedLayers(database: Database, removed: ReadonlySet<string>): number[] {
  const images = database.query<{ uuid: string; layer: number }, []>("SELECT uuid, layer FROM images").all();
  const layers = database
    .query<{ id: number; parent: number | null }, []>("SELECT id, parent FROM layers ORDER BY depth DESC")
    .all();
  const used = new Set(images.filter(({ uuid }) => !removed.has(uuid)).map(({ layer }) => layer));
  return layers.flatMap(({ id, parent }) => {
    if (!used.has(id)) return [id];
    if (parent !== null) used.add(parent);
    return [];
  });
}

function measure(layout: Layout, selected: Selected): PrunePlan {
  const total = (paths: readonly string[]) => totalOf(paths, freedBytes);
  return {
    images: selected.images.map((uuid) => ({ uuid, tags: selected.tags.get(uuid) ?? [] })),
    layers: { count: selected.layers.length, bytes: freedBytes(layerPaths(layout, selected.layers)) },
    files: total(filePaths(layout, selected.files)),
    operations: total(eventPaths(layout, selected.operations)),
    caches: total(selected.caches.map((name) => cacheDirectory(layout, name))),
  };
}

function totalOf(paths: readonly string[], measureBytes: (paths: readonly string[]) => number) {
  return { count: paths.length, bytes: measureBytes(paths) };
}

/** Layers' directories, and the files that imported ones came in. */
function layerPaths(layout: Layout, layers: readonly number[]): string[] {
  return layers.flatMap((id) => [layerDirectory(layout, id), blobsDirectory(layout, id)]);
}

/** The paths of well-formed names only: nothing else can be on disk. */
function filePaths(layout: Layout, files: readonly string[]): string[] {
  return files.filter(isFileName).map((sha256) => filePath(layout, sha256));
}

function eventPaths(layout: Layout, operations: readonly string[]): string[] {
  return operations.filter(isOperationId).map((uuid) => join(layout.events, `${uuid}.ndjson`));
}

function column<Value extends string | number>(database: Database, query: string): Value[] {
  return database
    .query<{ value: Value }, []>(query)
    .all()
    .map(({ value }) => value);
}
