import { BoughError } from "../errors.ts";
import { displayPath } from "./display-path.ts";
import { GlobSyntaxError, hasWildcard } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { contextPathOf } from "./resolve-path.ts";
import { type Rule, startRules } from "./rules.ts";
import {
  excludeFilter,
  type FoundPath,
  filtersAt,
  leftOut,
  lookUp,
  ruleAgainst,
  type Search,
} from "./search.ts";
import { type Filter, walkDirectory } from "./walk.ts";

/**
 * A source of `COPY --parents`: what it matches keeps its directories, from the context root or from a pivot
 * point `/./` on. The part after the pivot may have `**`. Links are not followed.
 * https://docs.docker.com/reference/dockerfile/#copy---parents
 */
export async function resolveParentsSource(search: Search, source: string): Promise<void> {
  const pivot = source.indexOf("/./");
  const base = pivot < 0 ? "" : contextPathOf(source.slice(0, pivot));
  const path = contextPathOf(pivot < 0 ? source : source.slice(pivot + 3));
  const from = lookUp(search, source, base);
  const rule = ruleAgainst(search, from);
  if (rule !== undefined) {
    search.warnings.push(leftOut(source, rule));
    return;
  }
  const filters = [
    ...filtersAt(search, from.contextPath),
    excludeFilter(search),
    ...includeFilter(source, path),
  ];
  const walked = await walkDirectory({ ...from, relativePath: "" }, filters, search.files, search.pace);
  search.special.push(...walked.special);
  if (walked.entries.length > 0) search.matches.push({ source, isDirectory: true, entries: walked.entries });
  else if (walked.ignoredBy !== undefined) search.warnings.push(leftOut(source, walked.ignoredBy));
  else if (hasWildcard(path)) search.unmatched.push(source);
  else requireNoLink(source, lookUp(search, source, base === "" ? path : `${base}/${path}`));
}

/** What exists but was not walked over: an `--exclude` leaves it out, or a link stands on the way to it. */
function requireNoLink(source: string, found: FoundPath): void {
  const link = found.links[0];
  if (link === undefined) return;
  throw new BoughError(
    `${displayPath(source)}: ${displayPath(link)} is a symbolic link, which --parents does not follow`,
    {
      hint: `Name what it leads to: ${displayPath(found.contextPath)}.`,
    },
  );
}

function includeFilter(source: string, path: string): Filter[] {
  if (path === "") return [];
  return [{ cursor: startRules([includeRule(source, path)]), keepsMatched: true }];
}

function includeRule(source: string, path: string): Rule {
  try {
    return {
      text: source,
      isNegated: false,
      pattern: compileIgnorePattern(path),
      origin: { kind: "flag" },
    };
  } catch (error) {
    if (!(error instanceof GlobSyntaxError)) throw error;
    throw new BoughError(`${displayPath(source)} is not a valid pattern: ${error.message}`);
  }
}
