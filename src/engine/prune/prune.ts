import type { Database } from "bun:sqlite";
import { readdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { inTransaction, isDamaged } from "../../database.ts";
import { BoughError } from "../../errors.ts";
import { withEngineDirectory } from "../engine-directory.ts";
import { closeLayout, hasOtherEngine, isOpen, type Layout, makeLayout } from "../layout.ts";
import { cachePaths } from "../records/caches.ts";
import { orphanedLayers, takeUnrecorded } from "../records/layers.ts";
import { unfinishedOperations } from "../records/operations.ts";
import type { Records } from "../records/records.ts";
import { diskUsage, freedBytes } from "../system/disk.ts";
import { readInventory } from "./inventory.ts";
import {
  createSizes,
  eventPaths,
  filePaths,
  type PruneSelection,
  type Selected,
  select,
  selectedPaths,
} from "./selection.ts";

/** What a prune would remove, or has removed. Sizes are the bytes of files that this frees. */
export interface PrunePlan {
  images: { uuid: string; tags: string[] }[];
  layers: CountAndBytes;
  files: CountAndBytes;
  operations: CountAndBytes;
  caches: CountAndBytes;
  /** The blobs of imported layers that themselves stay. */
  archives: CountAndBytes;
}

export interface CountAndBytes {
  count: number;
  bytes: number;
}

/** Returns what `prune` would remove now. */
export function planPrune(directory: string, selection: PruneSelection): Promise<PrunePlan> {
  return withEngineDirectory(directory, (database, layout) => choose(database, layout, selection).plan);
}

/**
 * Removes what is selected, with its records, and files that no record names. Images that a running operation uses stay. With
 * `all` it works even if the database is damaged. Returns what it removed.
 */
export async function prune(
  directory: string,
  selection: PruneSelection,
): Promise<PrunePlan & { leftoverBytes: number }> {
  try {
    return await pruneRecorded(directory, selection);
  } catch (error) {
    if (!selection.all || !isDamaged(error)) throw error;
    // Everything is to be removed, so the records are not needed.
    await removeDatabase(directory);
    return await pruneRecorded(directory, selection);
  }
}

/** Rejects if another engine is open: it would go on writing to the removed files. */
async function removeDatabase(directory: string): Promise<void> {
  const layout = makeLayout(directory);
  try {
    if (hasOtherEngine(layout))
      throw new BoughError("the engine's database is damaged, and another bough process is using it", {
        hint: "Prune it again when all builds and `bough serve` have ended.",
      });
    for (const name of ["", "-wal", "-shm"]) rmSync(`${layout.database}${name}`, { force: true });
  } finally {
    await closeLayout(layout);
  }
}

function pruneRecorded(
  directory: string,
  selection: PruneSelection,
): Promise<PrunePlan & { leftoverBytes: number }> {
  return withEngineDirectory(directory, async (database, layout) => {
    const { selected, plan } = inTransaction(database, () => {
      // Records that were damaged may point in any direction.
      database.run("PRAGMA defer_foreign_keys = ON");
      const chosen = choose(database, layout, selection);
      const remove = (table: string, key: string, values: readonly (string | number)[]) => {
        const statement = database.query(`DELETE FROM ${table} WHERE ${key} = ?`);
        for (const value of values) statement.run(value);
      };
      const { images, layers, files, operations, caches } = chosen.selected;
      remove("images", "uuid", images);
      // Each layer is removed before its parent.
      remove("layers", "id", layers);
      remove("files", "sha256", files);
      remove("operations", "uuid", operations);
      remove("caches", "name", caches);
      return chosen;
    });
    // Files go after their records: a record without its file is damage, a file without a record is removed at the next start.
    const paths = selectedPaths(layout, selected);
    for (const path of [...paths.layers, ...paths.caches, ...paths.archives])
      await rm(path, { recursive: true, force: true });
    for (const path of paths.operations) rmSync(path, { force: true });
    inTransaction(database, () => {
      const kept = new Set(readInventory({ database, layout }).files.map(({ name }) => name));
      const removed = selected.files.filter((sha256) => !kept.has(sha256));
      for (const path of filePaths(layout, removed)) rmSync(path, { recursive: true, force: true });
    });
    return { ...plan, leftoverBytes: await removeOrphans({ database, layout }) };
  });
}

function choose(
  database: Database,
  layout: Layout,
  selection: PruneSelection,
): { selected: Selected; plan: PrunePlan } {
  const inventory = readInventory({ database, layout });
  const selected = select(inventory, selection, createSizes({ database, layout }, inventory));
  const paths = selectedPaths(layout, selected);
  const tags = new Map(inventory.images.map((image) => [image.uuid, image.tags]));
  const amount = (count: number, freed: readonly string[]) => ({ count, bytes: freedBytes(freed) });
  const plan = {
    images: selected.images.map((uuid) => ({ uuid, tags: [...(tags.get(uuid) ?? [])] })),
    layers: amount(selected.layers.length, paths.layers),
    files: amount(paths.files.length, paths.files),
    operations: amount(selected.operations.length, paths.operations),
    caches: amount(selected.caches.length, paths.caches),
    archives: amount(paths.archives.length, paths.archives),
  };
  return { selected, plan };
}

/** Removes files that no record names: those of killed processes and of lost records. Returns the number of bytes removed. */
async function removeOrphans(records: Records): Promise<number> {
  const orphans = takeUnrecorded(records, findOrphans);
  const bytes = diskUsage(orphans);
  for (const path of orphans) await rm(path, { recursive: true, force: true });
  return bytes;
}

function findOrphans(records: Records): string[] {
  const { database, layout } = records;
  const column = (query: string) =>
    database
      .query<{ name: string }, []>(query)
      .all()
      .map(({ name }) => name);
  const within = (directory: string) => readdirSync(directory).map((name) => join(directory, name));
  const recorded = new Set([
    ...cachePaths(database, layout),
    ...filePaths(layout, column("SELECT sha256 AS name FROM files")),
    ...eventPaths(layout, column("SELECT uuid AS name FROM operations")),
  ]);
  const running = new Set(
    unfinishedOperations(database).flatMap(({ uuid, owner }) => (isOpen(layout, owner) ? uuid : [])),
  );
  return [
    ...orphanedLayers(records),
    ...[
      ...within(layout.caches),
      ...within(layout.files).flatMap((directory) => within(directory)),
      ...within(layout.events),
    ].filter((path) => !recorded.has(path)),
    ...within(layout.operations).filter((path) => !running.has(basename(path))),
    ...within(layout.scratches).filter((path) => !isOpen(layout, basename(path))),
  ];
}
