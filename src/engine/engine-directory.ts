import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { openDatabase } from "../database.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { migrations } from "./records/schema.ts";

/** Opens an engine's directory while `use` runs. Other processes may use it meanwhile. */
export async function withEngineDirectory<T>(
  directory: string,
  use: (database: Database, layout: Layout) => T | Promise<T>,
): Promise<T> {
  const layout = makeLayout(resolve(directory));
  const database = openDatabase(layout.database, migrations);
  try {
    return await use(database, layout);
  } finally {
    database.close();
    rmSync(layout.scratch, { recursive: true, force: true });
  }
}
