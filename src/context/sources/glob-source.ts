import type { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { enterFilters, type Filter, mayKeepBelow } from "../patterns/filters.ts";
import { escapeGlob, hasWildcard, unescapeGlob, validPattern } from "../patterns/glob.ts";
import {
  compileSourcePattern,
  enterDirectory,
  isMatched,
  type PathPattern,
  type PatternPosition,
  patternStart,
} from "../patterns/path-pattern.ts";
import type { Rule } from "../patterns/rules.ts";
import type { EntryPaths } from "./entry.ts";
import { childPaths } from "./entry-list.ts";
import { ignoredSource, missingSource, notADirectory } from "./missing-source.ts";
import { resolveFoundPath } from "./path-source.ts";
import { contextPathOf, resolveInContext } from "./resolve-path.ts";
import {
  failingRule,
  findSourcePath,
  ignoredSourceWarning,
  ignoreFilters,
  ruleAgainst,
  type SourceResult,
  type SourceSearch,
} from "./search.ts";
import { readNames, requireDecoded, statChild } from "./walk.ts";

/** Resolves a source with wildcards: each match is a source of its own. */
export async function resolveGlobSource(search: SourceSearch, source: string): Promise<SourceResult> {
  const { paths, ignoredBy, excluded, ...none } = await expandGlob(search, source, contextPathOf(source));
  let { refusal } = none;
  const outcomes = [];
  for (const path of paths) {
    const found = findSourcePath(search, path, path);
    const outcome = await resolveFoundPath(search, source, found, { byName: false });
    outcomes.push(outcome);
    const isIgnored = outcome.matches.length === 0 && outcome.ignoredBy !== undefined;
    // A link that leads to what is ignored is like a dangling one.
    if (isIgnored && found.links.length > 0) refusal ??= ignoredSource(path, search);
  }
  const matches = outcomes.flatMap((outcome) => outcome.matches);
  const special = outcomes.flatMap((outcome) => outcome.special ?? []);
  const rule = outcomes.find((outcome) => outcome.ignoredBy !== undefined)?.ignoredBy ?? ignoredBy;
  if (matches.length > 0 || special.length > 0)
    return {
      matches,
      special,
      refusal,
      excluded: [...excluded, ...outcomes.flatMap(({ excluded = [] }) => excluded)],
    };
  if (rule !== undefined) return { matches, warnings: [ignoredSourceWarning(source, rule)], refusal };
  return { matches, isUnmatched: paths.length === 0, refusal };
}

interface GlobMatches {
  paths: string[];
  /** A rule that hides some matches. */
  ignoredBy: Rule | undefined;
  /** The matches that default excludes hide. */
  excluded: string[];
  /** Docker's error for a pattern whose directory does not exist. A pattern without matches is not an error. */
  refusal?: BoughError;
}

/**
 * Returns the paths in the context that match, siblings sorted by bytes, and what hides others. Directories before the first
 * wildcard may be links; links that match a wildcard are not followed. Everything below a match is part of that match, as in
 * Docker.
 *
 * @param path clean, relative to the context root
 * @throws BoughError if the pattern is invalid for Go's `filepath.Match`
 */
export async function expandGlob(search: SourceSearch, source: string, path: string): Promise<GlobMatches> {
  const { base, pattern } = parseGlob(source, path);
  const start = resolveInContext(search.root, base, search.files, search.context);
  const none = { paths: [], ignoredBy: undefined, excluded: [] };
  if (start.kind === "missing")
    // A dangling link exists.
    return start.links.length > 0 ? none : { ...none, refusal: missingSource(source, start, search) };
  if (!start.stats.isDirectory()) return { ...none, refusal: notADirectory(source, base, search) };
  const rule = ruleAgainst(search, { ...start, name: "" });
  if (rule !== undefined) return { ...none, ignoredBy: rule, refusal: ignoredSource(source, search) };
  return await findMatches(search, { ...start, relativePath: "" }, pattern);
}

/** Returns the directory before the first wildcard, unescaped, and the pattern below it. */
function parseGlob(source: string, path: string): { base: string; pattern: PathPattern } {
  const names = path.split("/");
  const first = names.findIndex(hasWildcard);
  const compile = () => compileSourcePattern(names.slice(first).join("/"));
  const hint = `To copy the file of that name, write ${displayPath(escapeGlob(path))}.`;
  return {
    base: unescapeGlob(names.slice(0, first).join("/")),
    pattern: validPattern(displayPath(source), compile, hint),
  };
}

async function findMatches(
  search: SourceSearch,
  base: EntryPaths,
  pattern: PathPattern,
): Promise<GlobMatches> {
  const { files, pace } = search;
  const paths: string[] = [];
  const excluded: string[] = [];
  let ignoredBy: Rule | undefined;

  const visit = async (
    parent: EntryPaths,
    position: PatternPosition,
    filters: readonly Filter[],
  ): Promise<void> => {
    for (const name of readNames(parent, files)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;

      const matched = isMatched(pattern, position, name);
      const next = matched ? [] : enterDirectory(pattern, position, name);
      if (matched || next.length > 0) await visitName(parent, name, matched, next, filters);
    }
  };
  const visitName = async (
    parent: EntryPaths,
    name: string,
    matched: boolean,
    next: PatternPosition,
    filters: readonly Filter[],
  ): Promise<void> => {
    const below = enterFilters(filters, name);
    const child = childPaths(parent, name);
    const isDirectory = () => statChild(parent, name, files).isDirectory();
    const rule = failingRule(below);
    // A rule may keep something below an ignored directory.
    if (rule !== undefined && !(mayKeepBelow(below) && isDirectory())) {
      ignoredBy ??= rule;
      if (matched && rule.origin.kind === "default") excluded.push(child.contextPath);
    } else if (matched) {
      requireDecoded(parent, name);
      paths.push(child.contextPath);
    } else if (isDirectory()) await visit(child, next, below);
  };
  await visit(base, patternStart, ignoreFilters(search, base.contextPath));
  return { paths, ignoredBy, excluded };
}
