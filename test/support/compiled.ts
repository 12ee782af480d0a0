import { cpSync, linkSync } from "node:fs";
import { join } from "node:path";

const checkout = join(import.meta.dir, "../..");
/** `TEST_PROGRAM`: `scripts/test` has compiled it, for all processes that share the files. */
let compiled = process.env.TEST_PROGRAM;

/**
 * The path of the executable that users download, compiled by the first test file of a process that asks for it, unless it is
 * there already. It starts in a fraction of the time that Bun takes for `src/main.ts`.
 */
export function compileBough(): string {
  if (compiled === undefined) {
    const built = Bun.spawnSync([join(checkout, "scripts/build")], { stdout: "ignore", stderr: "pipe" });
    if (!built.success) throw new Error(built.stderr.toString());
    compiled = join(checkout, "dist/bough");
  }
  return compiled;
}

/** Puts the executable into a directory, as `bough`; returns its path. A hundred megabytes are only copied from another file system. */
export function linkBough(directory: string): string {
  const place = join(directory, "bough");
  try {
    linkSync(compileBough(), place);
  } catch {
    cpSync(compileBough(), place);
  }
  return place;
}
