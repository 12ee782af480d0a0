import type { Database } from "bun:sqlite";
import { readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import type { Layout } from "../layout.ts";
import { layerNames } from "./layers.ts";

/** Removes what was renamed to layers, and to what they came in, in a transaction that did not come to its end. */
export async function removeOrphanedLayers(database: Database, layout: Layout): Promise<void> {
  const doomed: string[] = [];
  // With the write lock held no other process is between a layer's rename and its commit.
  inTransaction(database, () => {
    const known = new Set(layerNames(database));
    for (const directory of [layout.layers, layout.blobs]) {
      for (const name of readdirSync(directory)) {
        if (known.has(name)) continue;
        const path = join(layout.scratch, crypto.randomUUID());
        renameSync(join(directory, name), path);
        doomed.push(path);
      }
    }
  });
  for (const path of doomed) await rm(path, { recursive: true, force: true });
}
