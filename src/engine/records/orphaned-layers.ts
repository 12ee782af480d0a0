import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import { moveToScratch } from "../layout.ts";
import { layerNames } from "./layers.ts";
import type { Records } from "./records.ts";

/** Removes directories of layers and blobs whose transaction did not commit. */
export async function removeOrphanedLayers(records: Records): Promise<void> {
  for (const path of takeUnrecorded(records, orphanedLayers))
    await rm(path, { recursive: true, force: true });
}

/** Returns the directories of layers and blobs that no record names. */
export function orphanedLayers({ database, layout }: Records): string[] {
  const known = new Set(layerNames(database));
  return [layout.layers, layout.blobs].flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => !known.has(name))
      .map((name) => join(directory, name)),
  );
}

/** Moves the paths that `find` returns, which no record names, into the scratch directory. Returns the new paths. */
export function takeUnrecorded(records: Records, find: (records: Records) => readonly string[]): string[] {
  // While this process holds the write lock, no other is between a rename and its commit.
  return inTransaction(records.database, () =>
    find(records).map((path) => moveToScratch(records.layout, path)),
  );
}
