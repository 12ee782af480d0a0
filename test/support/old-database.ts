import { Database } from "bun:sqlite";
import { renameSync, rmSync } from "node:fs";

/** Converts a database to the first version: it keeps the tables and columns of `schema`, with their current contents. */
export function downgrade(path: string, schema: string): void {
  const old = new Database(`${path}.old`, { create: true });
  old.run(schema);
  old.run(`ATTACH '${path}' AS latest`);
  const tables = old
    .query<{ name: string }, []>("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
    .all();
  for (const { name } of tables) {
    const columns = old
      .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?, 'main')")
      .all(name)
      .map((column) => column.name)
      .join(", ");
    old.run(`INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM latest.${name}`);
  }
  old.run("PRAGMA user_version = 1");
  old.close();
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  renameSync(`${path}.old`, path);
}
