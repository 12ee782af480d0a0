import { isRoot } from "../owners/ownership.ts";
import type { Staged, StagedEntry, StagedFile } from "../state/staged.ts";

type StagedOther = Exclude<StagedEntry, StagedFile>;

/**
 * Returns all entries except files and directories that the service makes itself, as parents of other entries. `withTimes`: those
 * that only need a time are among them.
 */
export function entriesToMake(
  staged: Staged,
  { withTimes }: { withTimes: boolean },
): [string, StagedOther][] {
  const parents = new Set<string>();
  const others: [string, StagedOther][] = [];
  let last: string | undefined;
  staged.forEach((entry, path) => {
    if (entry.type !== "file") others.push([path, entry]);
    const end = path.lastIndexOf("/");
    // Makes a string for each directory, not for each file of a large context.
    if (last !== undefined && end === last.length && path.startsWith(last)) return;
    last = path.slice(0, end);
    parents.add(last === "" ? "/" : last);
  });
  return others.filter(
    ([path, entry]) =>
      entry.type !== "directory" ||
      entry.isExplicit ||
      !isRoot(entry) ||
      (withTimes && entry.mtime !== undefined) ||
      !parents.has(path),
  );
}
