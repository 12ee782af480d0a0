import type { Database } from "bun:sqlite";
import { readdirSync } from "node:fs";
import { inTransaction } from "../../database.ts";
import { BoughError } from "../../errors.ts";
import { bootId } from "../../lock-file.ts";
import { isOpen, type Layout } from "../layout.ts";
import { failingDiskHint } from "../system/disk.ts";
import { markUnsyncedCachesLost } from "./caches.ts";

/** Replaces the boot ID of layers whose sync failed: they count as lost at once. */
const failedSync = "failed sync";

/**
 * Records a layer that may not be on the disk yet, although its record may be. The next engine drops it if the machine stops, and also
 * if a sync has failed since the operation that made it began. `boot` is the kernel's boot ID.
 */
export function recordUnsynced(
  database: Database,
  layer: number,
  { boot, operation }: { boot: string; operation: string },
): void {
  database
    .query<undefined, [number, string, string, string]>(
      `INSERT INTO unsynced_layers (layer, boot)
       VALUES (?, CASE (SELECT sync_failed FROM operations WHERE uuid = ?) WHEN 1 THEN ? ELSE ? END)`,
    )
    .run(layer, operation, failedSync, boot);
}

/** Returns the unsynced layers made since the machine booted; they are intact until it stops, unless a sync fails. */
export function unsyncedLayers(database: Database, boot: string): number[] {
  return database
    .query<{ layer: number }, [string]>("SELECT layer FROM unsynced_layers WHERE boot = ?")
    .all(boot)
    .map(({ layer }) => layer);
}

/** Returns the unsynced layers made before the machine booted, and those whose sync failed. */
export function lostLayers({ database, layout }: { database: Database; layout: Layout }): number[] {
  return database
    .query<{ layer: number; boot: string }, [string]>(
      "SELECT layer, boot FROM unsynced_layers WHERE boot <> ?",
    )
    .all(bootId() ?? "")
    .filter(({ boot }) => boot === failedSync || !hasOpenEngine(layout, boot))
    .map(({ layer }) => layer);
}

/** Returns true if an engine with this boot ID still runs: some containers have a boot ID of their own. */
function hasOpenEngine(layout: Layout, boot: string): boolean {
  return readdirSync(layout.locks).some((owner) => owner.startsWith(`${boot}.`) && isOpen(layout, owner));
}

/** Returns the lost layers whose sync failed. */
export function layersOfFailedSyncs(database: Database): number[] {
  return unsyncedLayers(database, failedSync);
}

/** Records that layers are on the disk, except those whose sync has failed meanwhile. */
export function recordSynced(database: Database, layers: readonly number[], boot: string): void {
  const query = database.query<undefined, [number, string]>(
    "DELETE FROM unsynced_layers WHERE layer = ? AND boot = ?",
  );
  for (const layer of layers) query.run(layer, boot);
}

/** Records that a layer's directory has been replaced: a failed sync of the old one does not concern the new one. */
export function recordReplaced(database: Database, layer: number): void {
  database.query<undefined, [number]>("DELETE FROM unsynced_layers WHERE layer = ?").run(layer);
}

export interface FailedSync {
  /** The layers that were unsynced when it began. */
  layers: readonly number[];
  startedAt: number;
}

/**
 * Records that a sync failed. Linux does not say which files it failed to write, and reports an error only once: the next sync
 * succeeds, in any process. So everything that was not on the disk counts as lost: the unsynced layers, those of all operations
 * that have not ended, and contents of cache mounts.
 */
export function recordFailedSync(database: Database, failure: FailedSync): void {
  inTransaction(database, () => {
    database.run(
      `INSERT OR REPLACE INTO unsynced_layers SELECT id, ? FROM layers WHERE id IN (SELECT value FROM json_each(?))`,
      [failedSync, JSON.stringify(layersLostBy(database, failure))],
    );
    markUnsyncedCachesLost(database, failure.startedAt);
    database.run("UPDATE operations SET sync_failed = 1 WHERE finished_at IS NULL");
    database.run("INSERT INTO failed_syncs (started_at) VALUES (?)", [failure.startedAt]);
  });
}

/** Returns the layers that are lost by a failed sync, of all processes. */
function layersLostBy(database: Database, { layers, startedAt }: FailedSync): number[] {
  return database
    .query<{ id: number }, [string, number]>(
      // Another process may have synced some of these since the kernel reported the error here.
      `SELECT layer AS id FROM unsynced_layers UNION SELECT value FROM json_each(?)
       UNION SELECT id FROM layers WHERE created_at >= ?`,
    )
    .all(JSON.stringify(layers), startedAt)
    .map(({ id }) => id);
}

/** Throws if a sync has failed since an operation began, in any process: files of the operation may be lost. */
export function requireNoFailedSync(database: Database, operation: string): void {
  if (!hasFailedSync(database, operation)) return;
  throw new BoughError("writing to the disk failed meanwhile, so the result was not kept", {
    hint: `Try again. ${failingDiskHint}`,
  });
}

/** Returns true if a sync has failed while the operation ran. */
export function hasFailedSync(database: Database, operation: string): boolean {
  const row = database
    .query<{ sync_failed: number }, [string]>("SELECT sync_failed FROM operations WHERE uuid = ?")
    .get(operation);
  return row?.sync_failed === 1;
}
