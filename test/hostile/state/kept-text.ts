/** The search through all that a builder keeps. */
import { Database } from "bun:sqlite";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Builder } from "./builder.ts";

/** Names every file in $BOUGH_HOME whose text `holds` accepts, as it is or, for the inputs of steps, compressed. */
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
  // A command that was left to itself may be at its end.
  database.run("PRAGMA busy_timeout = 15000");
  const steps = database
    .query<{ text: Uint8Array }, []>("SELECT inputs AS text FROM step UNION ALL SELECT step FROM failed_step")
    .all();
  database.close();
  builder.own(join(builder.state, "sessions"));
  const isInStep = steps.some(({ text }) => holds(Buffer.from(Bun.zstdDecompressSync(text)).toString()));
  return isInStep ? [...found, "a step"] : found;
}
