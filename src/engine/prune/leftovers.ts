import { readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { inTransaction } from "../../database.ts";
import { isAlive } from "../../process-identity.ts";
import { cachePaths } from "../records/caches.ts";
import { layerNames } from "../records/layers.ts";
import { unfinishedOperations } from "../records/operations.ts";
import type { Records } from "../records/whole-layers.ts";
import { diskUsage } from "../system/disk-usage.ts";
import { eventPaths, filePaths } from "./sizes.ts";

/**
 * Removes files that no record names: those of killed processes and of lost records. Returns the number of bytes removed.
 */
export async function removeLeftovers(records: Records): Promise<number> {
  const doomed: string[] = [];
  // No other process is between a rename and its commit while this one holds the write lock.
  inTransaction(records.database, () => {
    for (const path of findLeftovers(records)) {
      const place = join(records.layout.scratch, crypto.randomUUID());
      renameSync(path, place);
      doomed.push(place);
    }
  });
  const bytes = diskUsage(doomed);
  for (const path of doomed) await rm(path, { recursive: true, force: true });
  return bytes;
}

function findLeftovers({ database, layout }: Records): string[] {
  const column = (query: string) =>
    database
      .query<{ name: string }, []>(query)
      .all()
      .map(({ name }) => name);
  const within = (directory: string, names = readdirSync(directory)) =>
    names.map((name) => join(directory, name));
  const layers = new Set(layerNames(database));
  const recorded = new Set([
    ...cachePaths(database, layout),
    ...filePaths(layout, column("SELECT sha256 AS name FROM files")),
    ...eventPaths(layout, column("SELECT uuid AS name FROM operations")),
  ]);
  const running = new Set(
    unfinishedOperations(database).flatMap(({ uuid, owner }) => (isAlive(owner) ? uuid : [])),
  );
  return [
    ...[...within(layout.layers), ...within(layout.blobs)].filter((path) => !layers.has(basename(path))),
    ...[
      ...within(layout.caches),
      ...within(layout.files).flatMap((directory) => within(directory)),
      ...within(layout.events),
    ].filter((path) => !recorded.has(path)),
    ...within(layout.operations).filter((path) => !running.has(basename(path))),
    ...within(layout.scratches).filter((path) => path !== layout.scratch && !isAlive(basename(path))),
  ];
}
