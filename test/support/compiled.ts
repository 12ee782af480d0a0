import { cpSync, linkSync } from "node:fs";
import { join } from "node:path";

const checkout = join(import.meta.dir, "../..");
/** `TEST_PROGRAM` is compiled by `scripts/test` for all processes that run test files. */
let compiled = process.env.TEST_PROGRAM;

/**
 * Returns the path of the executable that users download. The first test file of a process that needs it compiles it, unless
 * `TEST_PROGRAM` is set. It starts in a fraction of the time that Bun takes for `src/main.ts`.
 */
export function compileBough(): string {
  if (compiled === undefined) {
    const built = Bun.spawnSync([join(checkout, "scripts/build")], { stdout: "ignore", stderr: "pipe" });
    if (!built.success) throw new Error(built.stderr.toString());
    compiled = join(checkout, "dist/bough");
  }
  return compiled;
}

/** Links the executable into a directory, as `bough`, or copies its 100 MB from another file system. Returns its path. */
export function linkBough(directory: string): string {
  const place = join(directory, "bough");
  try {
    linkSync(compileBough(), place);
  } catch {
    cpSync(compileBough(), place);
  }
  return place;
}
