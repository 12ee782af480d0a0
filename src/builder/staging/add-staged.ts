import { PersistentMap } from "../../columns/persistent-map.ts";
import { hasMarkName, markNameError } from "../../image/archive-limits.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";

/** Adds entries. A later entry replaces an earlier one at the same path; if that was a directory, also everything below it. */
export function addStaged(staged: Staged, additions: Iterable<readonly [string, StagedEntry]>): Staged {
  const addition = beginAddition(staged);
  for (const [path, entry] of additions) addition.add(path, entry);
  return addition.end();
}

/** Does the same as `addStaged`, one entry at a time. */
export function beginAddition(staged: Staged): {
  add(path: string, entry: StagedEntry): void;
  end(): Staged;
} {
  let before = PersistentMap.of(staged);
  let added = new Map<string, StagedEntry>();
  /** Paths that were directories before. What was staged below them is removed before anything new comes there, or at the end. */
  let replaced = new Set<string>();
  const clear = () => {
    before = before.with(added).without((path) => isBelow(path, replaced));
    added = new Map();
    replaced = new Set();
  };
  return {
    add(path, entry) {
      if (hasMarkName(path)) throw markNameError(path, "Copy it under another name, or leave it out.");
      if (isBelow(path, replaced)) clear();
      const previous = added.get(path) ?? before.get(path);
      if (previous?.type === "directory" && entry.type === "directory" && !entry.isExplicit) {
        // The time is that of the last source that is copied there.
        if (entry.mtime !== undefined) added.set(path, { ...previous, mtime: entry.mtime });
        return;
      }
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

/** Returns true if something is staged below `path`, so that `path` becomes a directory. */
export function isStagedBelow(staged: ReadonlyMap<string, NonNullable<unknown>>, path: string): boolean {
  return PersistentMap.of(staged).hasBelow(path);
}
