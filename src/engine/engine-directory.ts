import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { isDamaged, openDatabase } from "../database.ts";
import { describeUnusable } from "./faults.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { migrations } from "./records/schema.ts";

/** Opens an engine's directory while `use` runs. Other processes may use it meanwhile. */
export async function withEngineDirectory<T>(
  directory: string,
  use: (database: Database, layout: Layout) => T | Promise<T>,
): Promise<T> {
  const { layout, database } = open(resolve(directory));
  try {
    return await use(database, layout);
  } finally {
    database.close();
    rmSync(layout.scratch, { recursive: true, force: true });
  }
}

/** Throws errors of a damaged database unchanged. */
function open(directory: string): { layout: Layout; database: Database } {
  try {
    const layout = makeLayout(directory);
    return { layout, database: openDatabase(layout.database, migrations) };
  } catch (error) {
    throw isDamaged(error) ? error : describeUnusable(error, directory);
  }
}
