import { lstatSync, renameSync, rmSync } from "node:fs";
import type { Pace } from "../../pace.ts";
import { copyMetadata } from "../copies/upper-tree.ts";
import { lookUp } from "../sandbox/root/root-path.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";
import { isOpaque, markOpaque } from "../system/xattrs.ts";

/**
 * Merges two layers: moves everything in the upper one's directory to the lower one's. Whiteouts of the upper one stay, since
 * there may be layers below both.
 */
export async function mergeLayers(
  lower: string,
  upper: string,
  { inUserNamespace, pace }: { inUserNamespace: boolean; pace: Pace },
): Promise<void> {
  const waiting: { from: Path; to: Path }[] = [{ from: upper, to: lower }];
  const merged: typeof waiting = [];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    merged.push(next);
    for (const { name } of listDirectory(next.from)) {
      await pace.step();
      const [from, to] = [joinPath(next.from, name), joinPath(next.to, name)];
      const [above, below] = [lstatSync(from), lookUp(to)];
      const isHidden = above.isDirectory() && isOpaque(from, inUserNamespace);
      if (above.isDirectory() && below?.isDirectory() && !isHidden) waiting.push({ from, to });
      else {
        // A directory that replaces a file or a whiteout of the lower layer hides the layers below both.
        const isNew = above.isDirectory() && below !== undefined && !below.isDirectory();
        if (below !== undefined) rmSync(to, { recursive: true });
        renameSync(from, to);
        if (isNew) markOpaque(to, inUserNamespace);
      }
    }
  }
  // Directories' times come last, since adding entries changes them; the deepest directories come first.
  for (const { from, to } of merged.reverse()) copyMetadata(from, to, lstatSync(from));
  rmSync(upper, { recursive: true });
}
