/** bough's program for other systems. */
import { dirname, join } from "node:path";
import { compile } from "../../scripts/packaging/compile.ts";
import { bringRuntime } from "../../scripts/packaging/runtime.ts";
import { executableName, type Target, targets } from "../../scripts/packaging/targets.ts";
import { temporaryDirectory } from "./bough.ts";
import { cacheDirectory } from "./kept-results.ts";

const checkout = join(import.meta.dir, "../..");
const source = { version: "0.0.0", commit: "0".repeat(40), date: new Date(0) };

/** Compiles bough as for a release for a target, such as `windows-x64`, into a new directory. Returns the program's path. */
export function compileBoughFor(name: string): string {
  const target = targetOf(name);
  const work = temporaryDirectory();
  compile(checkout, target, source, work, userCache());
  return join(work, name, executableName(target));
}

/** Returns the path of Bun's own program for a target. */
export function bunFor(name: string): string {
  return bringRuntime(checkout, targetOf(name), userCache());
}

function targetOf(name: string): Target {
  const target = targets.find((known) => known.name === name);
  if (target === undefined) throw new Error(`there is no target ${name}`);
  return target;
}

/** The user's directory of caches: tests have another HOME. */
function userCache(): string {
  return dirname(cacheDirectory());
}
