import type { Database } from "bun:sqlite";
import { BoughError } from "../errors.ts";
import { findImage } from "./records/images.ts";
import { dropLostCaches, removeOrphanedCaches } from "./records/lost-caches.ts";
import type { Outcome } from "./records/operations.ts";
import { removeOrphanedLayers } from "./records/orphaned-layers.ts";
import type { Records } from "./records/records.ts";
import { hasMissedError, layersOfFailedSyncs } from "./records/unsynced-layers.ts";
import { failingDiskHint } from "./system/disk.ts";

/**
 * Removes layers whose sync failed, the images built on them, and lost caches, while engines are running. What a running operation
 * uses stays until that ends, but no request finds it (`createLayerCheck`). What can't be removed now is removed by the next
 * engine.
 *
 * @param after an operation; nothing is removed unless a sync has failed since it began
 */
export async function removeLostLayers({ database, layout }: Records, after?: string): Promise<void> {
  try {
    if (after !== undefined && !hasMissedError(database, after)) return;
    dropLostCaches(database, layout);
    await removeOrphanedCaches(database, layout);
    if (layersOfFailedSyncs(database).length === 0) return;
    const { dropLayers } = await import("./repair.ts");
    await dropLayers(database, layout, () => layersOfFailedSyncs(database));
    await removeOrphanedLayers({ database, layout });
  } catch {
    // The disk may have become read-only, for example.
  }
}

/**
 * Throws if an operation's image is lost because a sync has failed since the operation began. It does not throw if the operation
 * made no image, or if the image still exists, as that of a command that changed nothing may.
 */
export function requireResult(records: Records, operation: string, outcome: Outcome): void {
  if (outcome.status !== "SUCCESS" || outcome.image === undefined) return;
  if (!hasMissedError(records.database, operation) || findImage(records, outcome.image) !== undefined) return;
  throw lostResult();
}

/** Throws if a sync has failed since an operation began, in any process: it may have been what the operation has written. */
export function requireNoFailedSync(database: Database, operation: string): void {
  if (hasMissedError(database, operation)) throw lostResult();
}

function lostResult(): BoughError {
  return new BoughError("writing to the disk failed meanwhile, so the result was not kept", {
    hint: `Try again. ${failingDiskHint}`,
  });
}
