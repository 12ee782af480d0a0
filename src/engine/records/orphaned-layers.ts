import type { Database } from "bun:sqlite";
import { readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import type { Layout } from "../layout.ts";
import { removeOrphanedBlobs } from "./imported-blobs.ts";
import { layerNames } from "./layers.ts";

/** Removes directories that were renamed to layers in a transaction that did not come to its end. */
export async function removeOrphanedLayers(database: Database, layout: Layout): Promise<void> {
  const doomed: string[] = [];
  // With the write lock held no other process is between a layer's rename and its commit.
  inTransaction(database, () => {
    const known = new Set(layerNames(database));
    for (const name of readdirSync(layout.layers)) {
      if (known.has(name)) continue;
      const path = join(layout.scratch, crypto.randomUUID());
      renameSync(join(layout.layers, name), path);
      doomed.push(path);
    }
    removeOrphanedBlobs(layout, known);
  });
  for (const path of doomed) await rm(path, { recursive: true, force: true });
}
