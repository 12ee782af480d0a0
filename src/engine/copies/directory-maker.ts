import { basename, dirname } from "node:path";
import type { BoughError } from "../../errors.ts";
import type { UpperDirectory, UpperTree } from "./upper-tree.ts";

/**
 * Returns a function that finds or makes the directory at an absolute path. It starts from the nearest known parent, since
 * walking from the root is slow in a deep tree. `fail` makes the error for a path that is not a directory. No link of the tree
 * may be replaced meanwhile.
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

/** True if the path has a component `.` or `..`, or two slashes in a row. */
function hasDots(path: string): boolean {
  return /\/\.{0,2}(\/|$)/.test(path) && path !== "/";
}
