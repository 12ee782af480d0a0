import { posix } from "node:path";
import type { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Pace } from "../../pace.ts";
import type { ContextTitle } from "../build-context.ts";
import { displayPath } from "../file-system/display-path.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import { type Filter, mayKeepBelow, passes } from "../patterns/filters.ts";
import { unescapeGlob } from "../patterns/glob.ts";
import { describeRule } from "../patterns/ignore.ts";
import { enterPath, type Rule } from "../patterns/rules.ts";
import type { ContextWarning } from "./entry.ts";
import type { SourceMatch } from "./entry-list.ts";
import { missingSource } from "./missing-source.ts";
import { contextPathOf, type Resolution, resolveInContext } from "./resolve-path.ts";
import type { LeftOut, WhyLeftOut } from "./special-file.ts";

/** The context in which an instruction's sources are searched for, with the rules that apply. */
export interface SourceSearch {
  /** The context directory, absolute and without links. */
  root: string;
  /** Names the context in messages. */
  context: ContextTitle;
  ignore: readonly Filter[];
  exclude: readonly Rule[];
  files: FileSystem;
  pace: Pace;
  whyLeftOut: WhyLeftOut | undefined;
}

/** The result of one source word. */
export interface SourceResult {
  matches: readonly SourceMatch[];
  warnings?: readonly ContextWarning[];
  special?: readonly LeftOut[];
  /** Paths that default excludes left out, relative to the context; given only if something is left. */
  excluded?: readonly string[];
  /** True for a pattern without matches, which is fine if another source has some (`yarn.lock*`). */
  isUnmatched?: boolean;
  /** Docker's reason to refuse the instruction; by default it is only a warning. */
  refusal?: BoughError | undefined;
}

export type FoundSource = Extract<Resolution, { kind: "found" }> & {
  /** The last name of the path as written: the name of a link, not of its target. */
  name: string;
};

/**
 * Follows a clean path in the context. As in Docker, a path without wildcards is taken literally; only if nothing has that name
 * is a backslash in it an escape.
 *
 * @throws BoughError if the path does not exist or is a dangling link
 */
export function findSourcePath(search: SourceSearch, source: string, path: string): FoundSource {
  const resolution = resolveInContext(search.root, path, search.files, search.context);
  if (resolution.kind === "found") return { ...resolution, name: posix.basename(path) };
  const unescaped = unescapeGlob(path);
  if (unescaped !== path) {
    const second = resolveInContext(search.root, unescaped, search.files, search.context);
    if (second.kind === "found") return { ...second, name: posix.basename(unescaped) };
  }
  throw missingSource(source, resolution, search);
}

/** Returns the ignore filters, positioned at a directory of the context. */
export function ignoreFilters(search: SourceSearch, contextPath: string): Filter[] {
  return search.ignore.map(({ cursor, keepsMatched }) => ({
    cursor: enterPath(cursor, contextPath),
    keepsMatched,
  }));
}

/** Returns the rule that leaves out all of a path, or a link on the way to it. */
export function ruleAgainst(search: SourceSearch, found: FoundSource): Rule | undefined {
  for (const link of found.links) {
    const rule = failingRule(ignoreFilters(search, link));
    if (rule !== undefined) return rule;
  }
  const filters = ignoreFilters(search, found.contextPath);
  return found.stats.isDirectory() && mayKeepBelow(filters) ? undefined : failingRule(filters);
}

/** Returns the rule that keeps a path from passing. */
export function failingRule(filters: readonly Filter[]): Rule | undefined {
  return filters.find((filter) => !passes(filter, filter.cursor.decision))?.cursor.decision;
}

export function ignoredSourceWarning(source: string, rule: Rule): ContextWarning {
  const isDefault = rule.origin.kind === "default";
  const advice = isDefault ? wording`; ${{ option: "no-default-excludes" }} turns that list off` : "";
  // Docker's check matches paths. Only a rule that matches everything matches the context root.
  const isRoot = contextPathOf(source) === "" && !["*", "**", "**/*"].includes(rule.text);
  return {
    rule: isDefault ? "DefaultExclude" : isRoot ? "CopyMatchesNothing" : "CopyIgnoredFile",
    subject: source,
    message: `nothing is copied from ${displayPath(source)}: ${describeRule(rule)} leaves it out${advice}`,
    ...(isDefault ? { leavesOut: displayPath(source) } : {}),
  };
}
