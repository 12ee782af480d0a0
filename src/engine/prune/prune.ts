import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { inTransaction, isDamaged } from "../../database.ts";
import { BoughError } from "../../errors.ts";
import { withEngineDirectory } from "../engine-directory.ts";
import { closeLayout, hasOtherEngine, type Layout, makeLayout } from "../layout.ts";
import { freedBytes } from "../system/disk-usage.ts";
import { readInventory } from "./inventory.ts";
import { removeLeftovers } from "./leftovers.ts";
import { type PruneSelection, type Selected, select } from "./selection.ts";
import { createSizes, filePaths, pathsOf } from "./sizes.ts";

/** The things that a prune would remove, or has removed. Sizes are the bytes of files that this frees. */
export interface PrunePlan {
  images: { uuid: string; tags: string[] }[];
  layers: Amount;
  files: Amount;
  operations: Amount;
  caches: Amount;
}

export interface Amount {
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
    const paths = pathsOf(layout, selected);
    for (const path of [...paths.layers, ...paths.caches]) await rm(path, { recursive: true, force: true });
    for (const path of paths.operations) rmSync(path, { force: true });
    inTransaction(database, () => {
      const kept = new Set(readInventory({ database, layout }).files.map(({ name }) => name));
      const doomed = selected.files.filter((sha256) => !kept.has(sha256));
      for (const path of filePaths(layout, doomed)) rmSync(path, { recursive: true, force: true });
    });
    return { ...plan, leftoverBytes: await removeLeftovers({ database, layout }) };
  });
}

function choose(
  database: Database,
  layout: Layout,
  selection: PruneSelection,
): { selected: Selected; plan: PrunePlan } {
  const inventory = readInventory({ database, layout });
  const selected = select(inventory, selection, createSizes({ database, layout }, inventory));
  const paths = pathsOf(layout, selected);
  const tags = new Map(inventory.images.map((image) => [image.uuid, image.tags]));
  const amount = (count: number, freed: readonly string[]) => ({ count, bytes: freedBytes(freed) });
  const plan = {
    images: selected.images.map((uuid) => ({ uuid, tags: [...(tags.get(uuid) ?? [])] })),
    layers: amount(selected.layers.length, paths.layers),
    files: amount(paths.files.length, paths.files),
    operations: amount(selected.operations.length, paths.operations),
    caches: amount(selected.caches.length, paths.caches),
  };
  return { selected, plan };
}
