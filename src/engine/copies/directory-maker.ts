import { basename, dirname } from "node:path";
import type { BoughError } from "../../errors.ts";
import type { UpperDirectory, UpperTree } from "./upper-tree.ts";

/**
 * Finds or makes the directories that absolute paths lead to, each from the one above it: of a deep tree, going all the way from the
 * root would be felt. `fail` makes the error of a path that something else is at. Nobody replaces links of the tree meanwhile.
 */
export function createDirectoryMaker(
  to: UpperTree,
): (path: string, fail: (inside: string) => BoughError) => UpperDirectory {
  const known = new Map<string, UpperDirectory>([["/", to.root]]);
  return (path, fail) => {
    const walk = (way: string) => to.makeDirectories(to.resolve(way), undefined, fail);
    if (hasDots(path)) return walk(path);
    const missing: string[] = [];
    let above = path;
    for (; !known.has(above); above = dirname(above)) missing.push(above);
    let directory = known.get(above) ?? to.root;
    for (const next of missing.reverse()) {
      const name = basename(next);
      const isLink = to.find(directory, name)?.stats.isSymbolicLink() === true;
      directory = isLink ? walk(next) : to.makeDirectory(directory, name, undefined, fail);
      known.set(next, directory);
    }
    return directory;
  };
}

/** Returns whether the way leads over `.` or `..`, or has two slashes in a row. */
function hasDots(path: string): boolean {
  return /\/\.{0,2}(\/|$)/.test(path) && path !== "/";
}
