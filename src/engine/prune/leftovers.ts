import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isOpen } from "../layout.ts";
import { cachePaths } from "../records/caches.ts";
import { unfinishedOperations } from "../records/operations.ts";
import { orphanedLayers, takeUnrecorded } from "../records/orphaned-layers.ts";
import type { Records } from "../records/records.ts";
import { diskUsage } from "../system/disk-usage.ts";
import { eventPaths, filePaths } from "./sizes.ts";

/**
 * Removes files that no record names: those of killed processes and of lost records. Returns the number of bytes removed.
 */
export async function removeLeftovers(records: Records): Promise<number> {
  const doomed = takeUnrecorded(records, findLeftovers);
  const bytes = diskUsage(doomed);
  for (const path of doomed) await rm(path, { recursive: true, force: true });
  return bytes;
}

function findLeftovers(records: Records): string[] {
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
