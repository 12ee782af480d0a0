/** Searches all that a builder keeps. */
import { Database } from "bun:sqlite";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Builder } from "./builder.ts";

/** Returns the names of files in `$BOUGH_HOME` with a text that `holds` accepts. It decompresses the inputs of steps. */
export function findKept(builder: Builder, holds: (text: string) => boolean): string[] {
  const paths = readdirSync(builder.state, { recursive: true, encoding: "utf8" });
  const found = paths.filter((name) => {
    const path = join(builder.state, name);
    return (
      lstatSync(path, { throwIfNoEntry: false })?.isFile() === true && holds(readFileSync(path, "latin1"))
    );
  });
  const path = join(builder.state, "sessions/embedded.db");
  if (!existsSync(path)) return found;
  const database = new Database(path);
  // A command in the background may still write to it.
  database.run("PRAGMA busy_timeout = 15000");
  const steps = database
    .query<{ text: Uint8Array }, []>("SELECT inputs AS text FROM step UNION ALL SELECT step FROM failed_step")
    .all();
  database.close();
  builder.own(join(builder.state, "sessions"));
  const isInStep = steps.some(({ text }) => holds(Buffer.from(Bun.zstdDecompressSync(text)).toString()));
  return isInStep ? [...found, "a step"] : found;
}
