/** Layers whose files are not here yet: their records have the blobs from which they can be made, and the places that may have these. */
import type { Database } from "bun:sqlite";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { Records } from "./records.ts";

/** A blob of an absent layer, in one place. `source`: the address of its store, see `openBlobStore`. */
export interface AbsentBlob extends LayerBlob {
  source: string;
}

type Known = Pick<Records, "database" | "unreachable">;

/** Places of one blob that are kept beside the first. */
const maxOtherPlaces = 4;

/** Notes that a layer is absent, and its blobs, the lowest first. Replaces what was noted before. */
export function noteAbsent(database: Database, layer: number, blobs: readonly AbsentBlob[]): void {
  noteHere(database, layer);
  for (const [position, blob] of blobs.entries()) setFirst(database, layer, position, blob);
}

/** Notes that a layer's files are here. */
export function noteHere(database: Database, layer: number): void {
  database.query<undefined, [number]>("DELETE FROM absent_layers WHERE layer = ?").run(layer);
  database.query<undefined, [number]>("DELETE FROM other_places WHERE layer = ?").run(layer);
}

/**
 * Adds places to an absent layer, one for each of its blobs. `isFirst`: they are tried before those that are known already; otherwise
 * after them.
 */
export function addPlaces(
  database: Database,
  layer: number,
  blobs: readonly AbsentBlob[],
  { isFirst }: { isFirst: boolean },
): void {
  const known = placesOf(database, layer);
  for (const [position, blob] of blobs.entries()) {
    const places = known[position] ?? [];
    const [first, ...others] = places;
    if (first !== undefined && isSamePlace(first, blob)) continue;
    if (isFirst || first === undefined) {
      setFirst(database, layer, position, blob);
      removeOther(database, layer, position, blob);
      if (first !== undefined) addOther(database, layer, position, first);
    } else if (others.length < maxOtherPlaces && !others.some((place) => isSamePlace(place, blob)))
      addOther(database, layer, position, blob);
  }
}

/** Notes that the content of a blob is not the layer's with this DiffID, which no later download can change. */
export function noteForged(
  database: Database,
  { digest, diffId }: Pick<LayerBlob, "digest" | "diffId">,
): void {
  database
    .query<undefined, [string, string]>("INSERT OR IGNORE INTO forged_blobs (digest, diff_id) VALUES (?, ?)")
    .run(digest, diffId);
}

export function isAbsent(database: Database, layer: number): boolean {
  return (
    database
      .query<{ found: number }, [number]>("SELECT 1 AS found FROM absent_layers WHERE layer = ? LIMIT 1")
      .get(layer) !== null
  );
}

/**
 * Returns the blobs of an absent layer, the lowest first; none if its files are here. Each in the first place from which it may be
 * fetched, or in the first one if there is none.
 */
export function absentBlobs(records: Known, layer: number): AbsentBlob[] {
  return placesOf(records.database, layer).flatMap((places) => {
    const usable = places.find((place) => faultOf(records, place) === undefined);
    return usable ?? places[0] ?? [];
  });
}

/** Returns all places of each blob of an absent layer. */
export function placesOf(database: Database, layer: number): AbsentBlob[][] {
  return group(
    database.query<PlaceRow, [number]>(`${selectPlaces} WHERE layer = ? ${orderPlaces}`).all(layer),
  ).flatMap(([, places]) => places);
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

/** Returns why the first of these layers that can be fetched from nowhere can't be. */
export function unreachableReason(records: Known, layers: readonly number[]): string | undefined {
  if (!hasFaults(records)) return undefined;
  for (const layer of layers)
    for (const places of placesOf(records.database, layer)) {
      const reasons = places.map((place) => faultOf(records, place));
      if (reasons.length > 0 && !reasons.includes(undefined)) return reasons[0];
    }
  return undefined;
}

/** Returns the absent layers that can be fetched from nowhere. */
export function unreachableLayers(records: Known): number[] {
  if (!hasFaults(records)) return [];
  const rows = records.database.query<PlaceRow, []>(`${selectPlaces} ${orderPlaces}`).all();
  return group(rows)
    .filter(([, blobs]) =>
      blobs.some((places) => places.every((place) => faultOf(records, place) !== undefined)),
    )
    .map(([layer]) => layer);
}

/** False if every place of every blob is usable, as in nearly all cases. */
function hasFaults({ database, unreachable }: Known): boolean {
  return (
    unreachable?.isEmpty() === false || database.query("SELECT 1 FROM forged_blobs LIMIT 1").get() !== null
  );
}

/** Returns why a blob is not fetched from this place. */
function faultOf({ database, unreachable }: Known, blob: AbsentBlob): string | undefined {
  const isForged =
    database
      .query<{ found: number }, [string, string]>(
        "SELECT 1 AS found FROM forged_blobs WHERE digest = ? AND diff_id = ?",
      )
      .get(blob.digest, blob.diffId) !== null;
  if (isForged)
    return `its layer ${blob.digest} in ${blob.source} is forged: its content is not ${blob.diffId}`;
  return unreachable?.reasonOf(blob);
}

type PlaceRow = AbsentBlob & { layer: number; position: number };

const columns = "source, media_type AS mediaType, digest, size, diff_id AS diffId";
const selectPlaces = `SELECT * FROM (
  SELECT layer, position, NULL AS other, ${columns} FROM absent_layers
  UNION ALL SELECT layer, position, id AS other, ${columns} FROM other_places)`;
/** The first place first, then the newest. */
const orderPlaces = "ORDER BY layer, position, other IS NOT NULL, other DESC";

/** Returns the places of each blob of each layer. */
function group(rows: readonly PlaceRow[]): [layer: number, places: AbsentBlob[][]][] {
  const layers = new Map<number, AbsentBlob[][]>();
  for (const { layer, position, source, mediaType, digest, size, diffId } of rows) {
    const blobs = layers.getOrInsertComputed(layer, () => []);
    const places = blobs[position] ?? [];
    blobs[position] = places;
    places.push({ source, mediaType, digest, size, diffId });
  }
  return [...layers];
}

function isSamePlace(one: AbsentBlob, other: AbsentBlob): boolean {
  return Bun.deepEquals(one, other);
}

type PlaceValues = [number, number, string, string, string, number, string];

function valuesOf(layer: number, position: number, blob: AbsentBlob): PlaceValues {
  const { source, mediaType, digest, size, diffId } = blob;
  return [layer, position, source, mediaType, digest, size, diffId];
}

/** What else is known of the layer stays. */
function setFirst(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  database
    .query<undefined, PlaceValues>(
      `INSERT INTO absent_layers (layer, position, source, media_type, digest, size, diff_id) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (layer, position) DO UPDATE SET source = excluded.source, media_type = excluded.media_type,
         digest = excluded.digest, size = excluded.size, diff_id = excluded.diff_id`,
    )
    .run(...valuesOf(layer, position, blob));
}

/** Adds a place, and removes the oldest beyond the limit. */
function addOther(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  removeOther(database, layer, position, blob);
  database
    .query<undefined, PlaceValues>(
      "INSERT INTO other_places (layer, position, source, media_type, digest, size, diff_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .run(...valuesOf(layer, position, blob));
  database
    .query<undefined, [number, number, number]>(
      `DELETE FROM other_places WHERE id IN (
         SELECT id FROM other_places WHERE layer = ? AND position = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`,
    )
    .run(layer, position, maxOtherPlaces);
}

function removeOther(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  database
    .query<undefined, [number, number, string, string]>(
      "DELETE FROM other_places WHERE layer = ? AND position = ? AND source = ? AND digest = ?",
    )
    .run(layer, position, blob.source, blob.digest);
}
