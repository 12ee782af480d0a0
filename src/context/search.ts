import { posix } from "node:path";
import type { BuildContext } from "./build-context.ts";
import { displayPath } from "./display-path.ts";
import type { ContextWarning, SourceMatch } from "./entry.ts";
import { type FileSystem, localFileSystem } from "./file-system.ts";
import { describeRule, type IgnoreRules, parseExcludeFlags, startIgnoreRules } from "./ignore.ts";
import { missingSource } from "./missing-source.ts";
import { createPace, type Pace } from "./pace.ts";
import { type Resolution, resolveInContext } from "./resolve-path.ts";
import { enterPath, type Rule, startRules } from "./rules.ts";
import { unescapeGlob } from "./source-glob.ts";
import { type Filter, mayKeepBelow, passes, type SpecialFile } from "./walk.ts";

export interface SourceOptions {
  context: BuildContext;
  ignore: IgnoreRules;
  /** The source words of one COPY or ADD, expanded; no URLs and here-documents. */
  sources: readonly string[];
  /** `--exclude`: patterns relative to a directory source; for a file, of its name or its path. */
  exclude?: readonly string[];
  /** `--parents` */
  parents?: boolean;
  signal?: AbortSignal;
  files?: FileSystem;
}

/** What the sources of one instruction share while they are looked for. */
export interface Search {
  root: string;
  ignore: readonly Filter[];
  exclude: readonly Rule[];
  files: FileSystem;
  pace: Pace;
  matches: SourceMatch[];
  warnings: ContextWarning[];
  special: SpecialFile[];
  /** Patterns that nothing matches: fine as long as another source comes to something (`yarn.lock*`). */
  unmatched: string[];
}

export function startSearch({
  context,
  ignore,
  exclude = [],
  signal,
  files = localFileSystem,
}: SourceOptions): Search {
  return {
    root: context.realPath,
    ignore: startIgnoreRules(ignore).map((cursor) => ({ cursor, keepsMatched: false })),
    exclude: parseExcludeFlags(exclude),
    files,
    pace: createPace(signal),
    matches: [],
    warnings: [],
    special: [],
    unmatched: [],
  };
}

export type FoundPath = Extract<Resolution, { kind: "found" }>;

/**
 * Follows a clean path in the context. As in Docker, a path without wildcards is taken as it is written; only if
 * nothing has that name, a backslash in it escapes.
 *
 * @throws BoughError where the path does not exist or is a link that leads nowhere
 */
export function lookUp(search: Search, source: string, path: string): FoundPath & { name: string } {
  const written = resolveInContext(search.root, path, search.files);
  if (written.kind === "found") return { ...written, name: posix.basename(path) };
  const unescaped = unescapeGlob(path);
  if (unescaped !== path) {
    const meant = resolveInContext(search.root, unescaped, search.files);
    if (meant.kind === "found") return { ...meant, name: posix.basename(unescaped) };
  }
  throw missingSource(source, written, search.root, search.files);
}

export function filtersAt(search: Search, contextPath: string): Filter[] {
  return search.ignore.map(({ cursor, keepsMatched }) => ({
    cursor: enterPath(cursor, contextPath),
    keepsMatched,
  }));
}

export function excludeFilter(search: Search): Filter {
  return { cursor: startRules(search.exclude), keepsMatched: false };
}

/** The rule that leaves out all of a path, or a link on the way to it. */
export function ruleAgainst(search: Search, found: FoundPath): Rule | undefined {
  for (const link of found.links) {
    const rule = decisionAgainst(filtersAt(search, link), false);
    if (rule !== undefined) return rule;
  }
  return decisionAgainst(filtersAt(search, found.contextPath), found.stats.isDirectory());
}

function decisionAgainst(filters: readonly Filter[], isDirectory: boolean): Rule | undefined {
  if (isDirectory && mayKeepBelow(filters)) return undefined;
  return filters.find((filter) => !passes(filter, filter.cursor.decision))?.cursor.decision;
}

export function leftOut(source: string, rule: Rule): ContextWarning {
  const advice = rule.origin.kind === "default" ? "; --no-default-excludes turns that list off" : "";
  return {
    message: `nothing is copied from ${displayPath(source)}: ${describeRule(rule)} leaves it out${advice}`,
  };
}
