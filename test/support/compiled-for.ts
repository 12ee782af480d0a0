/** bough's program for other systems. */
import { dirname, join } from "node:path";
import { compile } from "../../scripts/packaging/compile.ts";
import { executableName, targets } from "../../scripts/packaging/targets.ts";
import { temporaryDirectory } from "./bough.ts";
import { cacheDirectory } from "./kept-results.ts";

const checkout = join(import.meta.dir, "../..");
const source = { version: "0.0.0", commit: "0".repeat(40), date: new Date(0) };

/** Compiles bough as for a release for a target, such as `windows-x64`, into a new directory. Returns the program's path. */
export function compileBoughFor(name: string): string {
  const target = targets.find((known) => known.name === name);
  if (target === undefined) throw new Error(`there is no target ${name}`);
  const work = temporaryDirectory();
  // In the user's directory of caches, since tests have another HOME.
  compile(checkout, target, source, work, dirname(cacheDirectory()));
  return join(work, name, executableName(target));
}
