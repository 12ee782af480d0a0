import { PersistentMap } from "../../persistent-map.ts";
import type { Staged, StagedEntry } from "./staged.ts";
import { stagedMap } from "./staged-column.ts";

/** Later entries replace earlier ones of the same path, and what was staged below a path that stops being a directory. */
export function addStaged(staged: Staged, additions: Iterable<readonly [string, StagedEntry]>): Staged {
  const addition = beginAddition(staged, 0);
  for (const [path, entry] of additions) addition.add(path, entry);
  return addition.end();
}

/**
 * Does what `addStaged` does, one entry at a time: of a large context, a pair for each and all at once would be felt. `count`: how
 * many there will be at least.
 */
export function beginAddition(
  staged: Staged,
  count: number,
): {
  add(path: string, entry: StagedEntry): void;
  end(): Staged;
} {
  let before = PersistentMap.of(staged);
  let added = stagedMap(count);
  /** Directories that are none any more: what is below them goes before something new comes there, or at the end. */
  let replaced = new Set<string>();
  const clear = () => {
    before = before.with(added).without((path) => isBelow(path, replaced));
    added = stagedMap(count);
    replaced = new Set();
  };
  return {
    add(path, entry) {
      if (isBelow(path, replaced)) clear();
      const previous = added.get(path) ?? before.get(path);
      if (previous?.type === "directory" && entry.type === "directory" && !entry.isExplicit) return;
      if (entry.type !== "directory" && previous?.type === "directory") replaced.add(path);
      added.set(path, entry);
    },
    end() {
      if (replaced.size > 0) clear();
      return before.with(added);
    },
  };
}

function isBelow(path: string, directories: ReadonlySet<string>): boolean {
  if (directories.size === 0) return false;
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
    if (directories.has(path.slice(0, end))) return true;
  return false;
}

/** Returns whether something is staged below `path`, so that a directory is made there. */
export function isStagedBelow(staged: ReadonlyMap<string, NonNullable<unknown>>, path: string): boolean {
  return PersistentMap.of(staged).hasBelow(path);
}
