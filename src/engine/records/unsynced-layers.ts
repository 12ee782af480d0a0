import type { Database } from "bun:sqlite";

/**
 * Notes a layer that may not be on the disk yet, although its record may be. If the machine stops, the next engine drops it as
 * never made. `boot` is the kernel's boot ID.
 */
export function noteUnsynced(database: Database, layer: number, boot: string): void {
  database
    .query<undefined, [number, string]>("INSERT INTO unsynced_layers (layer, boot) VALUES (?, ?)")
    .run(layer, boot);
}

/** Returns the unsynced layers made since the machine booted; they are intact until it stops. */
export function unsyncedLayers(database: Database, boot: string): number[] {
  return layersOf(database, "boot = ?", boot);
}

/** Returns the unsynced layers made before the machine booted. */
export function lostLayers(database: Database, boot: string): number[] {
  return layersOf(database, "boot <> ?", boot);
}

/** Notes that layers are on the disk. */
export function noteSynced(database: Database, layers: readonly number[]): void {
  const query = database.query<undefined, [number]>("DELETE FROM unsynced_layers WHERE layer = ?");
  for (const layer of layers) query.run(layer);
}

function layersOf(database: Database, which: string, boot: string): number[] {
  return database
    .query<{ layer: number }, [string]>(`SELECT layer FROM unsynced_layers WHERE ${which}`)
    .all(boot)
    .map(({ layer }) => layer);
}
