import type { Stats } from "node:fs";
import type { Pace } from "../../pace.ts";
import { isMissing, mayBeReplaced, readError, undecodableName } from "../file-system/file-error.ts";
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
import type { EntryPaths } from "./entry.ts";
import { childPaths, type EntryList } from "./entry-list.ts";
import { entryType, readTarget } from "./entry-of.ts";
import { type LeftOut, leftOut, specialKind, type WhyLeftOut } from "./special-file.ts";

export interface WalkResult {
  /** Pipes, sockets and devices that were skipped. */
  special: LeftOut[];
  /** A rule of the context that left something out, if any did. */
  ignoredBy: Rule | undefined;
  /** Paths that default excludes left out, relative to the context; for a directory only its own path. */
  excluded: string[];
}

interface WalkOptions {
  files: FileSystem;
  pace: Pace;
  entries: EntryList;
  whyLeftOut?: WhyLeftOut | undefined;
}

/**
 * Adds to `entries` everything below a directory that passes all filters, each directory before its contents. A directory that
 * does not pass is read only if a rule can let something below it pass. It becomes an entry only if something does.
 *
 * @throws BoughError that names a path that can't be read
 */
export async function walkDirectory(
  directory: EntryPaths,
  filters: readonly Filter[],
  { files, pace, entries, whyLeftOut }: WalkOptions,
): Promise<WalkResult> {
  const result: WalkResult = { special: [], ignoredBy: undefined, excluded: [] };
  /** Directories above the current place that become entries only if something below them does. */
  const awaiting: { add(): void }[] = [];

  const visit = async (parent: EntryPaths, parentFilters: readonly Filter[]): Promise<void> => {
    const number = entries.addDirectory(parent);
    for (const name of readNames(parent, files)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;

      if (passesAll(parentFilters, name)) await visitKept(number, parent, name, parentFilters);
      else await visitIgnored(number, parent, name, parentFilters);
    }
  };

  const visitKept: Visit = async (number, parent, name, parentFilters) => {
    const stats = statChild(parent, name, files);
    const type = entryType(stats);
    const special = type === "special" ? specialKind(stats) : undefined;
    const skipped = special && (await leftOut(special, childPaths(parent, name).contextPath, whyLeftOut));
    if (skipped !== undefined) {
      result.special.push(skipped);
      return;
    }
    const target = type === "symlink" ? readTarget(childPaths(parent, name), files) : undefined;
    if (awaiting.length > 0) for (const directory of awaiting.splice(0)) directory.add();
    entries.add(number, name, stats, { target, special });
    if (type === "directory") await visit(childPaths(parent, name), enterFilters(parentFilters, name));
  };

  const visitIgnored: Visit = async (number, parent, name, parentFilters) => {
    // Most names that a long list leaves out are not directories, and entering one takes as long as the list.
    const below = mayPassBelow(parentFilters, name) ? enterFilters(parentFilters, name) : undefined;
    const stats = below !== undefined && mayKeepBelow(below) ? statChild(parent, name, files) : undefined;
    if (below === undefined || stats?.isDirectory() !== true) {
      const rule = ignoringRule(parentFilters, name);
      result.ignoredBy ??= rule;
      if (rule?.origin.kind === "default") result.excluded.push(childPaths(parent, name).contextPath);
      return;
    }
    const waiting = { add: () => entries.add(number, name, stats) };
    awaiting.push(waiting);
    await visit(childPaths(parent, name), below);
    if (awaiting.at(-1) === waiting) awaiting.pop();
  };

  await visit(directory, filters);
  return result;
}

/** Visits a name in the directory `parent`, whose number among the entries is `number`. */
type Visit = (number: number, parent: EntryPaths, name: string, filters: readonly Filter[]) => Promise<void>;

export function readNames(directory: EntryPaths, files: FileSystem): string[] {
  try {
    return sortByBytes([...files.readDirectory(directory.absolutePath)]);
  } catch (error) {
    throw readError("read the directory", directory.contextPath || ".", error);
  }
}

/** Sorts names in place by the bytes of their UTF-8 form, an order that does not depend on the locale. */
function sortByBytes(names: string[]): string[] {
  // UTF-16 order equals byte order, except for characters of two units.
  return /[\uD800-\uDFFF]/.test(names.join(""))
    ? names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    : names.sort();
}

export function statChild(parent: EntryPaths, name: string, files: FileSystem): Stats {
  try {
    return files.stat(`${parent.absolutePath}/${name}`);
  } catch (error) {
    if (isMissing(error)) requireDecoded(parent, name);
    throw readError("read", childPaths(parent, name).contextPath, error);
  }
}

/** Throws if a name in a directory is not UTF-8, so that `readNames` has replaced bytes of it. */
export function requireDecoded(parent: EntryPaths, name: string): void {
  const error = mayBeReplaced(name) ? undecodableName(parent, name) : undefined;
  if (error !== undefined) throw error;
}

/** Returns the rule of the context that is the only reason why `name` does not pass. */
function ignoringRule(filters: readonly Filter[], name: string): Rule | undefined {
  const keeping = filters.filter(({ keepsMatched }) => keepsMatched);
  if (!mayKeepBelow(enterFilters(keeping, name))) return undefined;
  return filters
    .filter((filter) => !filter.keepsMatched && !passes(filter, filter.cursor.decide(name)))
    .map(({ cursor }) => cursor.decide(name))
    .find((rule) => rule?.origin.kind !== "flag");
}
