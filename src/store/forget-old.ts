import type { Database } from "bun:sqlite";

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
