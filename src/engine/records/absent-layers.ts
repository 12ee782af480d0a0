/** Layers whose files are not here yet: their records have the blobs from which they can be made, and the sources of these blobs. */
import type { Database } from "bun:sqlite";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { Records } from "./records.ts";

/** A blob of an absent layer in one of its sources. `source` is the address of the store that has it; see `openBlobStore`. */
export interface AbsentBlob extends LayerBlob {
  source: string;
}

type Known = Pick<Records, "database" | "unreachable">;

/** The maximum number of a blob's sources that are recorded beside the first. */
const maxOtherSources = 4;

/** Records that a layer is absent, and its blobs, the lowest first. Replaces an earlier record. */
export function recordAbsent(database: Database, layer: number, blobs: readonly AbsentBlob[]): void {
  recordPresent(database, layer);
  for (const [position, blob] of blobs.entries()) setFirst(database, layer, position, blob);
}

/** Records that a layer's files are here. */
export function recordPresent(database: Database, layer: number): void {
  database.query<undefined, [number]>("DELETE FROM absent_layers WHERE layer = ?").run(layer);
  database.query<undefined, [number]>("DELETE FROM other_places WHERE layer = ?").run(layer);
}

/**
 * Adds a source to each blob of an absent layer.
 *
 * @param options.isFirst true if it is tried before the sources on record, and not after them
 */
export function addBlobSources(
  database: Database,
  layer: number,
  blobs: readonly AbsentBlob[],
  { isFirst }: { isFirst: boolean },
): void {
  const known = blobSources(database, layer);
  for (const [position, blob] of blobs.entries()) {
    const [first, ...others] = known[position] ?? [];
    if (first !== undefined && Bun.deepEquals(first, blob)) continue;
    if (isFirst || first === undefined) {
      setFirst(database, layer, position, blob);
      removeOther(database, layer, position, blob);
      if (first !== undefined) addOther(database, layer, position, first);
    } else if (others.length < maxOtherSources && !others.some((other) => Bun.deepEquals(other, blob)))
      addOther(database, layer, position, blob);
  }
}

/** Records that a blob's content does not have this DiffID, which no later download can change. */
export function recordForged(
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
 * Returns the blobs of an absent layer, the lowest first; none if its files are here. Each has the first source from which it may be
 * fetched, or the first of all if there is none.
 */
export function absentBlobs(records: Known, layer: number): AbsentBlob[] {
  return blobSources(records.database, layer).flatMap((sources) => {
    const usable = sources.find((source) => faultOf(records, source) === undefined);
    return usable ?? sources[0] ?? [];
  });
}

/** Returns all sources of each blob of an absent layer, the blobs the lowest first. */
export function blobSources(database: Database, layer: number): AbsentBlob[][] {
  return group(
    database.query<SourceRow, [number]>(`${selectSources} WHERE layer = ? ${orderSources}`).all(layer),
  ).flatMap(([, blobs]) => blobs);
}

/** Returns those of a layer and all layers below it that are absent, the lowest first. */
export function absentLayersOf(database: Database, layer: number): number[] {
  // Most engines have no absent layers at all, which this query finds much faster.
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

/** Returns why the first unreachable one of these layers can't be fetched. */
export function unreachableReason(records: Known, layers: readonly number[]): string | undefined {
  if (!hasFaults(records)) return undefined;
  for (const layer of layers)
    for (const sources of blobSources(records.database, layer)) {
      const reasons = sources.map((source) => faultOf(records, source));
      if (reasons.length > 0 && !reasons.includes(undefined)) return reasons[0];
    }
  return undefined;
}

/** Returns the absent layers that can't be fetched from any source. */
export function unreachableLayers(records: Known): number[] {
  if (!hasFaults(records)) return [];
  const rows = records.database.query<SourceRow, []>(`${selectSources} ${orderSources}`).all();
  return group(rows)
    .filter(([, blobs]) =>
      blobs.some((sources) => sources.every((source) => faultOf(records, source) !== undefined)),
    )
    .map(([layer]) => layer);
}

/** Returns false if every source of every blob is usable, as in nearly all cases. */
function hasFaults({ database, unreachable }: Known): boolean {
  return (
    unreachable?.isEmpty() === false || database.query("SELECT 1 FROM forged_blobs LIMIT 1").get() !== null
  );
}

/** Returns why a blob is not fetched from this source. */
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

type SourceRow = AbsentBlob & { layer: number; position: number };

const columns = "source, media_type AS mediaType, digest, size, diff_id AS diffId";
const selectSources = `SELECT * FROM (
  SELECT layer, position, NULL AS other, ${columns} FROM absent_layers
  UNION ALL SELECT layer, position, id AS other, ${columns} FROM other_places)`;
/** The first source comes first, then the newest. */
const orderSources = "ORDER BY layer, position, other IS NOT NULL, other DESC";

/** Returns the sources of each blob of each layer. */
function group(rows: readonly SourceRow[]): [layer: number, blobs: AbsentBlob[][]][] {
  const layers = new Map<number, AbsentBlob[][]>();
  for (const { layer, position, source, mediaType, digest, size, diffId } of rows) {
    const blobs = layers.getOrInsertComputed(layer, () => []);
    const sources = blobs[position] ?? [];
    blobs[position] = sources;
    sources.push({ source, mediaType, digest, size, diffId });
  }
  return [...layers];
}

type SourceValues = [number, number, string, string, string, number, string];

function valuesOf(layer: number, position: number, blob: AbsentBlob): SourceValues {
  const { source, mediaType, digest, size, diffId } = blob;
  return [layer, position, source, mediaType, digest, size, diffId];
}

/** Sets the first source of a blob. The rest of the layer's record stays. */
function setFirst(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  database
    .query<undefined, SourceValues>(
      `INSERT INTO absent_layers (layer, position, source, media_type, digest, size, diff_id) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (layer, position) DO UPDATE SET source = excluded.source, media_type = excluded.media_type,
         digest = excluded.digest, size = excluded.size, diff_id = excluded.diff_id`,
    )
    .run(...valuesOf(layer, position, blob));
}

/** Adds a source, and removes the oldest ones beyond the limit. */
function addOther(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  removeOther(database, layer, position, blob);
  database
    .query<undefined, SourceValues>(
      "INSERT INTO other_places (layer, position, source, media_type, digest, size, diff_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .run(...valuesOf(layer, position, blob));
  database
    .query<undefined, [number, number, number]>(
      `DELETE FROM other_places WHERE id IN (
         SELECT id FROM other_places WHERE layer = ? AND position = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`,
    )
    .run(layer, position, maxOtherSources);
}

function removeOther(database: Database, layer: number, position: number, blob: AbsentBlob): void {
  database
    .query<undefined, [number, number, string, string]>(
      "DELETE FROM other_places WHERE layer = ? AND position = ? AND source = ? AND digest = ?",
    )
    .run(layer, position, blob.source, blob.digest);
}
