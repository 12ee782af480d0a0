import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { excludeFilters, type Filter, includeFilters } from "../patterns/filters.ts";
import { hasWildcard } from "../patterns/glob.ts";
import { EntryList } from "./entry-list.ts";
import { expandGlob } from "./glob-source.ts";
import { contextPathOf } from "./resolve-path.ts";
import {
  type FoundPath,
  findSourcePath,
  ignoredSourceWarning,
  ignoreFilters,
  ruleAgainst,
  type SourceResult,
  type SourceSearch,
} from "./search.ts";
import { type WalkResult, walkDirectory } from "./walk.ts";

/**
 * Resolves a source of `COPY --parents`. Its matches keep their directories, from the context root or from a pivot point `/./`
 * on. The part after the pivot may have `**`. Links are not followed.
 * https://docs.docker.com/reference/dockerfile/#copy---parents
 */
export async function resolveParentsSource(search: SourceSearch, source: string): Promise<SourceResult> {
  const pivot = source.indexOf("/./");
  const base = pivot < 0 ? "" : contextPathOf(source.slice(0, pivot));
  const path = contextPathOf(pivot < 0 ? source : source.slice(pivot + 3));
  const include = includeFilters(path, displayPath(source));
  const bases = hasWildcard(base) ? (await expandGlob(search, source, base)).paths : [base];
  const isOptional = hasWildcard(base) || hasWildcard(path);

  const walks: (WalkResult & { entries: EntryList })[] = [];
  for (const one of bases) {
    const from = findSourcePath(search, source, one);
    const walked = await walkFrom(search, from, include);
    walks.push(walked);
    if (walked.entries.length > 0) continue;
    if (walked.ignoredBy === undefined && !isOptional)
      requireNoLink(
        source,
        findSourcePath(search, source, from.contextPath === "" ? path : `${from.contextPath}/${path}`),
      );
  }
  const matches = walks
    .filter(({ entries }) => entries.length > 0)
    .map(({ entries }) => ({ source, isDirectory: true, entries }));
  const special = walks.flatMap((walked) => walked.special);
  const ignoredBy = walks.find((walked) => walked.ignoredBy !== undefined)?.ignoredBy;
  if (matches.length > 0 || special.length > 0)
    return { matches, special, excluded: walks.flatMap((walked) => walked.excluded) };
  if (ignoredBy !== undefined) return { matches, warnings: [ignoredSourceWarning(source, ignoredBy)] };
  return { matches, isUnmatched: isOptional };
}

async function walkFrom(
  search: SourceSearch,
  from: FoundPath,
  include: readonly Filter[],
): Promise<WalkResult & { entries: EntryList }> {
  const entries = new EntryList();
  const rule = ruleAgainst(search, from);
  if (rule !== undefined || !from.stats.isDirectory())
    return { entries, special: [], ignoredBy: rule, excluded: [] };
  const { contextPath, absolutePath } = from;
  const filters = [...ignoreFilters(search, contextPath), ...excludeFilters(search.exclude), ...include];
  const paths = { contextPath, absolutePath, relativePath: "" };
  return { entries, ...(await walkDirectory(paths, filters, { ...search, entries })) };
}

/** Throws if a link is the reason why an existing path was not walked. The other possible reason is an `--exclude`. */
function requireNoLink(source: string, found: FoundPath): void {
  const link = found.links[0];
  if (link === undefined) return;
  throw new BoughError(
    `${displayPath(source)}: ${displayPath(link)} is a symbolic link, which --parents does not follow`,
    { hint: `Name its target instead: ${displayPath(found.contextPath)}.` },
  );
}
