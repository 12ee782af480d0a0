import type { Tree } from "../differential/tree.ts";

/** Contexts and stages set the times that matter long before this one (September 2008). Later times come from the build. */
const past = 1_220_000_000;

/**
 * Returns a line for each file or link of both trees whose time was set, but differs. Debian's Docker keeps no times of directories;
 * newer ones do: see `recorded`.
 */
export function compareTimes(bough: Tree, docker: Tree): string[] {
  return [...docker].flatMap(([path, { line, modified: expected }]) => {
    if (line.startsWith("directory")) return [];
    const modified = bough.get(path)?.modified;
    if (expected === undefined || modified === undefined || expected === modified) return [];
    if (Math.min(expected, modified) > past) return [];
    return [`${path}: bough ${modified}, docker ${expected}`];
  });
}
