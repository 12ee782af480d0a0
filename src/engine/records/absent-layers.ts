/** Layers whose files are not here yet: their records have the blobs from which they can be made, and where these can be fetched. */
import type { Database } from "bun:sqlite";
import type { LayerBlob } from "../../image/layer-header.ts";

/** A blob of an absent layer. `source`: the address of its store, see `openBlobStore`. */
export interface AbsentBlob extends LayerBlob {
  source: string;
}

/** Notes that a layer is absent, and its blobs, the lowest first. Replaces what was noted before. */
export function noteAbsent(database: Database, layer: number, blobs: readonly AbsentBlob[]): void {
  noteHere(database, layer);
  const query = database.query<undefined, [number, number, string, string, string, number, string]>(
    "INSERT INTO absent_layers (layer, position, source, media_type, digest, size, diff_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  for (const [position, { source, mediaType, digest, size, diffId }] of blobs.entries())
    query.run(layer, position, source, mediaType, digest, size, diffId);
}

/** Notes that a layer's files are here. */
export function noteHere(database: Database, layer: number): void {
  database.query<undefined, [number]>("DELETE FROM absent_layers WHERE layer = ?").run(layer);
}

export function isAbsent(database: Database, layer: number): boolean {
  return (
    database
      .query<{ found: number }, [number]>("SELECT 1 AS found FROM absent_layers WHERE layer = ? LIMIT 1")
      .get(layer) !== null
  );
}

/** Returns the blobs of an absent layer, the lowest first; none if its files are here. */
export function absentBlobs(database: Database, layer: number): AbsentBlob[] {
  return database
    .query<AbsentBlob, [number]>(
      `SELECT source, media_type AS mediaType, digest, size, diff_id AS diffId FROM absent_layers
       WHERE layer = ? ORDER BY position`,
    )
    .all(layer);
}

/** Returns the absent ones of a layer and all layers below it, the lowest first. */
export function absentLayersOf(database: Database, layer: number): number[] {
  // Few engines have any, and then nothing needs to be looked at.
  if (database.query("SELECT 1 FROM absent_layers LIMIT 1").get() === null) return [];
  return database
    .query<{ id: number }, [number]>(
      `WITH RECURSIVE chain (id, parent, depth) AS (
         SELECT id, parent, depth FROM layers WHERE id = ?
         UNION SELECT layers.id, layers.parent, layers.depth FROM layers JOIN chain ON layers.id = chain.parent
       ) SELECT id FROM chain WHERE id IN (SELECT layer FROM absent_layers) ORDER BY depth`,
    )
    .all(layer)
    .map(({ id }) => id);
}

/** Returns all layers that are absent and can be fetched from this address only. */
export function absentLayersFrom(database: Database, source: string): number[] {
  return database
    .query<{ layer: number }, [string]>("SELECT DISTINCT layer FROM absent_layers WHERE source = ?")
    .all(source)
    .map(({ layer }) => layer);
}
