/**
 * Listings of absent layers: directories with the entries of a layer and empty files, in which paths are looked up and to which
 * files are added without the layer's own contents. One is made of the table of contents in the layer's blob, which nothing but the
 * image's manifest vouches for: `declareImage` keeps layers with different tables apart. A listing stays as long as the record of its
 * layer: others may be reading it.
 */
import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { LayerTable } from "../../image/layer-table.ts";
import type { Layout } from "../layout.ts";
import { absentLayersOf, isAbsent } from "./absent-layers.ts";
import type { Image } from "./images.ts";
import { layerDirectory } from "./layers.ts";
import type { Records } from "./records.ts";

export function listingDirectory({ listings }: Pick<Layout, "listings">, layer: number): string {
  return join(listings, layer.toString(36));
}

/** Adds the position of the table of contents to the record of an absent layer. */
export function recordTable(database: Database, layer: number, table: LayerTable | undefined): void {
  database
    .query<undefined, [string | null, number]>("UPDATE absent_layers SET contents_table = ? WHERE layer = ?")
    .run(textOf(table), layer);
}

/** Returns the position of an absent layer's table of contents, if it has one that may be used. */
export function tableOf(database: Database, layer: number): LayerTable | undefined {
  const row = database
    .query<{ table: string | null }, [number]>(
      'SELECT contents_table AS "table" FROM absent_layers WHERE layer = ? AND contents_table IS NOT NULL',
    )
    .get(layer);
  return row?.table == null ? undefined : (JSON.parse(row.table) as LayerTable);
}

function textOf(table: LayerTable | undefined): string | null {
  return table === undefined ? null : JSON.stringify(table);
}

/** Returns the absent layers of an image that have no listing yet; `undefined` if one can't have any. */
export function unlistedLayers(
  { database, layout }: Records,
  { layer }: Pick<Image, "layer">,
): number[] | undefined {
  const absent = absentLayersOf(database, layer);
  if (absent.some((id) => tableOf(database, id) === undefined)) return undefined;
  return absent.filter((id) => !existsSync(listingDirectory(layout, id)));
}

/** Returns the directory in which a layer's entries are looked up: its own, or else its listing. */
export function lookupDirectory({ database, layout }: Records, layer: number): string {
  return isAbsent(database, layer) ? listingDirectory(layout, layer) : layerDirectory(layout, layer);
}
