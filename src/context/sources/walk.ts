import type { Stats } from "node:fs";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { displayPath } from "../file-system/display-path.ts";
import { fileError, isMissing } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import {
  enterFilters,
  type Filter,
  mayKeepBelow,
  mayPassBelow,
  passes,
  passesAll,
} from "../patterns/filters.ts";
import type { Rule } from "../patterns/rules.ts";
import type { ContextEntry } from "./entry.ts";
import { type EntryPaths, entryOf, specialKind } from "./entry-of.ts";

export interface WalkResult {
  /** Without the directory that the walk began in. A directory comes before what is in it. */
  entries: ContextEntry[];
  /** Pipes, sockets and devices that were passed over. */
  special: SpecialFile[];
  /** A rule of the context that left something out, if any did. */
  ignoredBy: Rule | undefined;
  /** What default excludes left out; of a directory nothing below it. Relative to the context. */
  excluded: string[];
}

export interface SpecialFile {
  kind: string;
  contextPath: string;
}

/**
 * Everything below a directory that passes all filters. A directory that does not pass is read only if a rule
 * can let something below it pass; then it is an entry if something does.
 *
 * @throws BoughError that names a path which can't be read
 */
export async function walkDirectory(
  directory: EntryPaths,
  filters: readonly Filter[],
  files: FileSystem,
  pace: Pace,
): Promise<WalkResult> {
  const result: WalkResult = { entries: [], special: [], ignoredBy: undefined, excluded: [] };
  /** Directories above the current place that are entries only if something below them is. */
  const awaiting: ContextEntry[] = [];

  const visit = async (parent: EntryPaths, parentFilters: readonly Filter[]): Promise<void> => {
    for (const name of readNames(parent, files)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;

      if (passesAll(parentFilters, name)) {
        const entry = takeChild(parent, name, files, result.special);
        if (entry === undefined) continue;
        if (awaiting.length > 0) result.entries.push(...awaiting.splice(0));
        result.entries.push(entry);
        if (entry.type === "directory") await visit(entry, enterFilters(parentFilters, name));
      } else {
        // Most of what a long list leaves out is no directory, and to enter it takes as long as the list.
        const below = mayPassBelow(parentFilters, name) ? enterFilters(parentFilters, name) : undefined;
        const isOpen = below !== undefined && mayKeepBelow(below);
        const entry = isOpen ? directoryChild(parent, name, files) : undefined;
        if (entry === undefined || below === undefined) {
          const rule = ignoringRule(parentFilters, name);
          result.ignoredBy ??= rule;
          if (rule?.origin.kind === "default") result.excluded.push(childPaths(parent, name).contextPath);
          continue;
        }
        awaiting.push(entry);
        await visit(entry, below);
        if (awaiting.at(-1) === entry) awaiting.pop();
      }
    }
  };
  await visit(directory, filters);
  return result;
}

export function readNames(directory: EntryPaths, files: FileSystem): string[] {
  try {
    return sortByBytes([...files.readDirectory(directory.absolutePath)]);
  } catch (error) {
    throw fileError("read the directory", directory.contextPath || ".", error);
  }
}

/** Sorts names in place by the bytes of their UTF-8 form, the order that does not depend on any locale. */
function sortByBytes(names: string[]): string[] {
  // UTF-16 order is the order of the bytes but for characters that take two units.
  return /[\uD800-\uDFFF]/.test(names.join(""))
    ? names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    : names.sort();
}

export function childPaths(parent: EntryPaths, name: string): EntryPaths {
  const contextPath = parent.contextPath === "" ? name : `${parent.contextPath}/${name}`;
  return {
    contextPath,
    absolutePath: `${parent.absolutePath}/${name}`,
    // One string for both where they are the same: they are most of what a large context takes in memory.
    relativePath:
      parent.relativePath === parent.contextPath
        ? contextPath
        : parent.relativePath === ""
          ? name
          : `${parent.relativePath}/${name}`,
  };
}

export function statChild(paths: EntryPaths, files: FileSystem): Stats {
  try {
    return files.stat(paths.absolutePath);
  } catch (error) {
    if (isMissing(error) && paths.contextPath.includes("\uFFFD"))
      throw new BoughError(`cannot copy ${displayPath(paths.contextPath)}: its name is not valid UTF-8`, {
        hint: "Rename it, or leave it out with an ignore rule.",
        cause: error,
      });
    throw fileError("read", paths.contextPath, error);
  }
}

function takeChild(
  parent: EntryPaths,
  name: string,
  files: FileSystem,
  special: SpecialFile[],
): ContextEntry | undefined {
  const paths = childPaths(parent, name);
  const stats = statChild(paths, files);
  const entry = entryOf(paths, stats, files);
  if (entry === undefined) special.push({ kind: specialKind(stats), contextPath: paths.contextPath });
  return entry;
}

function directoryChild(parent: EntryPaths, name: string, files: FileSystem): ContextEntry | undefined {
  const paths = childPaths(parent, name);
  const stats = statChild(paths, files);
  return stats.isDirectory() ? entryOf(paths, stats, files) : undefined;
}

/** The rule of the context that alone stands in the way of `name`. */
function ignoringRule(filters: readonly Filter[], name: string): Rule | undefined {
  const keeping = filters.filter(({ keepsMatched }) => keepsMatched);
  if (!mayKeepBelow(enterFilters(keeping, name))) return undefined;
  return filters
    .filter((filter) => !filter.keepsMatched && !passes(filter, filter.cursor.decide(name)))
    .map(({ cursor }) => cursor.decide(name))
    .find((rule) => rule?.origin.kind !== "flag");
}
