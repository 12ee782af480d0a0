import type { Database } from "bun:sqlite";
import { readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import type { Layout } from "../layout.ts";
import { layerNames } from "./layers.ts";

/** Removes directories of layers and blobs whose transaction did not commit. */
export async function removeOrphanedLayers(database: Database, layout: Layout): Promise<void> {
  const doomed: string[] = [];
  // While this process holds the write lock, no other is between a layer's rename and its commit.
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
