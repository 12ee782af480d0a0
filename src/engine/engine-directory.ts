import type { Database } from "bun:sqlite";
import { resolve } from "node:path";
import { isDamaged, openDatabase } from "../database.ts";
import { describeUnusable } from "./faults.ts";
import { closeLayout, type Layout, makeLayout } from "./layout.ts";
import { migrations } from "./records/schema.ts";

/** Opens an engine's directory while `use` runs. Other processes may use it meanwhile. */
export async function withEngineDirectory<T>(
  directory: string,
  use: (database: Database, layout: Layout) => T | Promise<T>,
): Promise<T> {
  const { layout, database } = openEngineDirectory(directory);
  try {
    return await use(database, layout);
  } catch (error) {
    // Some damage appears only when records are read.
    throw isDamaged(error) ? describeUnusable(error, directory) : error;
  } finally {
    database.close();
    await closeLayout(layout);
  }
}

/** Opens an engine's records; makes what is missing of its directory. */
export function openEngineDirectory(given: string): { layout: Layout; database: Database } {
  const directory = resolve(given);
  let layout: Layout | undefined;
  try {
    layout = makeLayout(directory);
    return { layout, database: openDatabase(layout.database, migrations) };
  } catch (error) {
    // Its scratch directory is empty, so this waits for nothing.
    if (layout !== undefined) void closeLayout(layout);
    throw describeUnusable(error, directory);
  }
}
