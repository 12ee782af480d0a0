import type { Tree } from "../differential/tree.ts";

/** Contexts and stages set times long before this one (September 2008) where they matter: what is newer came with the build. */
const past = 1_220_000_000;

/** A line for each file of both trees whose time was set and is not kept. */
export function compareTimes(bough: Tree, docker: Tree): string[] {
  return [...docker].flatMap(([path, { modified: expected }]) => {
    const modified = bough.get(path)?.modified;
    if (expected === undefined || modified === undefined || expected === modified) return [];
    if (Math.min(expected, modified) > past) return [];
    return [`${path}: bough ${modified}, docker ${expected}`];
  });
}
