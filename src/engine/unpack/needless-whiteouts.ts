import { lstatSync, type Stats, unlinkSync } from "node:fs";
import type { Pace } from "../../pace.ts";
import { LayerTree, type MergedDirectory } from "../copies/layer-tree.ts";
import { giveTimes } from "../copies/upper-tree.ts";
import { joinPath, listDirectory } from "../system/path.ts";
import { isWhiteout } from "../system/xattrs.ts";

/**
 * Removes whiteouts for names that the layers below do not have. overlayfs lists them as broken entries in a directory that it
 * does not merge. `below`: the directories of those layers, the uppermost first.
 */
export async function removeNeedlessWhiteouts(
  directory: string,
  below: readonly string[],
  { inUserNamespace, pace }: { inUserNamespace: boolean; pace: Pace },
): Promise<void> {
  const layers = [directory, ...below].map((path, layer) => ({ layer, path }));
  const tree = new LayerTree(layers, inUserNamespace);
  const waiting: MergedDirectory[] = [tree.root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [own, ...lower] = next;
    if (own?.layer !== 0) continue;
    let times: Stats | undefined;
    for (const { name, type } of listDirectory(own.path)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = joinPath(own.path, name);
      if (type === "directory") waiting.push(tree.enter(next, name));
      if (type !== "other" || !isWhiteout(lstatSync(path))) continue;
      if (tree.find(lower, name) !== undefined) continue;
      times ??= lstatSync(own.path);
      unlinkSync(path);
    }
    if (times !== undefined) giveTimes(own.path, times);
  }
}
