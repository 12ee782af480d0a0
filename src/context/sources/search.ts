import { posix } from "node:path";
import type { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { displayPath } from "../file-system/display-path.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import { type Filter, mayKeepBelow, passes } from "../patterns/filters.ts";
import { unescapeGlob } from "../patterns/glob.ts";
import { describeRule } from "../patterns/ignore.ts";
import { enterPath, type Rule } from "../patterns/rules.ts";
import type { ContextWarning } from "./entry.ts";
import { missingSource } from "./missing-source.ts";
import { contextPathOf, type Resolution, resolveInContext } from "./resolve-path.ts";
import type { SourceMatch } from "./source-match.ts";
import type { SpecialFile } from "./walk.ts";

/** What the sources of one instruction are looked for with. */
export interface SourceSearch {
  /** The context directory, absolute and without links. */
  root: string;
  ignore: readonly Filter[];
  exclude: readonly Rule[];
  files: FileSystem;
  pace: Pace;
}

/** What one source word came to. */
export interface SourceResult {
  matches: readonly SourceMatch[];
  warnings?: readonly ContextWarning[];
  special?: readonly SpecialFile[];
  /** What default excludes left out, where something is left. Relative to the context. */
  excluded?: readonly string[];
  /** A pattern that nothing has the name for; fine as long as another source comes to something (`yarn.lock*`). */
  isUnmatched?: boolean;
  /** Docker's reason to refuse the instruction, where a warning will do by default. */
  refusal?: BoughError | undefined;
}

export type FoundPath = Extract<Resolution, { kind: "found" }> & {
  /** The last name of the path as it was asked for: the name of a link, not of what it leads to. */
  name: string;
};

/**
 * Follows a clean path in the context. As in Docker, a path without wildcards is taken as it is written; only if
 * nothing has that name, a backslash in it escapes.
 *
 * @throws BoughError where the path does not exist or is a link that leads nowhere
 */
export function findSourcePath(search: SourceSearch, source: string, path: string): FoundPath {
  const resolution = resolveInContext(search.root, path, search.files);
  if (resolution.kind === "found") return { ...resolution, name: posix.basename(path) };
  const unescaped = unescapeGlob(path);
  if (unescaped !== path) {
    const second = resolveInContext(search.root, unescaped, search.files);
    if (second.kind === "found") return { ...second, name: posix.basename(unescaped) };
  }
  throw missingSource(source, resolution, search.root, search.files);
}

/** The ignore rules, as they stand at a directory of the context. */
export function ignoreFilters(search: SourceSearch, contextPath: string): Filter[] {
  return search.ignore.map(({ cursor, keepsMatched }) => ({
    cursor: enterPath(cursor, contextPath),
    keepsMatched,
  }));
}

/** The rule that leaves out all of a path, or a link on the way to it. */
export function ruleAgainst(search: SourceSearch, found: FoundPath): Rule | undefined {
  for (const link of found.links) {
    const rule = failingRule(ignoreFilters(search, link));
    if (rule !== undefined) return rule;
  }
  const filters = ignoreFilters(search, found.contextPath);
  return found.stats.isDirectory() && mayKeepBelow(filters) ? undefined : failingRule(filters);
}

/** The rule because of which a path does not pass. */
export function failingRule(filters: readonly Filter[]): Rule | undefined {
  return filters.find((filter) => !passes(filter, filter.cursor.decision))?.cursor.decision;
}

export function ignoredSourceWarning(source: string, rule: Rule): ContextWarning {
  const isDefault = rule.origin.kind === "default";
  const advice = isDefault ? "; --no-default-excludes turns that list off" : "";
  // Docker's check is about paths: the root of the context is not a path that a rule could mean, unless it means everything.
  const isRoot = contextPathOf(source) === "" && !["*", "**", "**/*"].includes(rule.text);
  return {
    rule: isDefault ? "DefaultExclude" : isRoot ? "CopyMatchesNothing" : "CopyIgnoredFile",
    message: `nothing is copied from ${displayPath(source)}: ${describeRule(rule)} leaves it out${advice}`,
  };
}
