import type { Database } from "bun:sqlite";

/**
 * Layers that are not known to be on the disk yet, although their records may be: should the machine stop, the next engine
 * drops them as never made. `boot` names a run of the machine.
 */
export function noteUnsynced(database: Database, layer: number, boot: string): void {
  database
    .query<undefined, [number, string]>("INSERT INTO unsynced_layers (layer, boot) VALUES (?, ?)")
    .run(layer, boot);
}

/** Those that this run of the machine has made: they are whole for as long as it lasts. */
export function unsyncedLayers(database: Database, boot: string): number[] {
  return layersOf(database, "boot = ?", boot);
}

/** Those that another run of the machine has made, and not brought to the disk. */
export function lostLayers(database: Database, boot: string): number[] {
  return layersOf(database, "boot <> ?", boot);
}

/** What they are made of is on the disk. */
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
