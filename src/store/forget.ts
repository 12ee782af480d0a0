import type { Database } from "bun:sqlite";
import { inTransaction } from "../database.ts";

/** After that, the contents are read once more. */
const keptMilliseconds = 90 * 24 * 3600 * 1000;

/** Removes what a table has known of contents for a long time: nothing tells when they are no longer used. */
export function forgetOld(
  database: Database,
  table: "url" | "copied" | "archive" | "fact",
  now: number,
  condition = "1",
): void {
  database.query(`DELETE FROM ${table} WHERE written_at < ? AND ${condition}`).run(now - keptMilliseconds);
}

/** The tables with what is known of images. */
const tables = ["import", "fact", "copied"];

/** Removes what is remembered of images that are gone, except their places in histories. */
export function forgetImages(database: Database, images: Iterable<string>): void {
  inTransaction(database, () => {
    for (const table of tables) {
      const forget = database.query<undefined, [string]>(`DELETE FROM ${table} WHERE image = ?`);
      for (const image of images) forget.run(image);
    }
    // Facts of a layer that is the image's difference from its base: its ID begins with the image.
    const forgetLayer = database.query<undefined, [string]>("DELETE FROM fact WHERE image GLOB ? || ' *'");
    for (const image of images) forgetLayer.run(image);
  });
}
