import { lstatSync, renameSync, rmSync } from "node:fs";
import type { Pace } from "../../pace.ts";
import { joinPath, listDirectory, type Path } from "../copies/path.ts";
import { giveAttributes, giveTimes } from "../copies/upper-tree.ts";
import { lookUp } from "../sandbox/root/root-path.ts";
import { isOpaque, markOpaque, readAttributes, writeAttributes } from "../system/xattrs.ts";

/**
 * Makes one layer of two: moves all that is in the directory of the upper one to that of the lower one. What the upper one deletes
 * stays marked, since there may be layers below both.
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
        // A directory where the lower one deletes a file hides what is below that, too.
        const isNew = above.isDirectory() && below !== undefined && !below.isDirectory();
        if (below !== undefined) rmSync(to, { recursive: true });
        renameSync(from, to);
        if (isNew) markOpaque(to, inUserNamespace);
      }
    }
  }
  // Last, since what they got changed them; what is deeper first.
  for (const { from, to } of merged.reverse()) {
    const stats = lstatSync(from);
    giveAttributes(to, stats, stats);
    writeAttributes(to, readAttributes(from));
    giveTimes(to, stats);
  }
  rmSync(upper, { recursive: true });
}
