import { BoughError } from "../errors.ts";
import { displayPath } from "./display-path.ts";
import type { ContextWarning, SourceMatch } from "./entry.ts";
import { type EntryPaths, entryOf, specialKind } from "./entry-of.ts";
import { hasWildcard } from "./glob.ts";
import { resolveParentsSource } from "./parents.ts";
import { contextPathOf, resolveInContext } from "./resolve-path.ts";
import { enterPath, isMatch, type Rule, startRules } from "./rules.ts";
import {
  excludeFilter,
  type FoundPath,
  filtersAt,
  leftOut,
  lookUp,
  ruleAgainst,
  type Search,
  type SourceOptions,
  startSearch,
} from "./search.ts";
import { expandGlob, parseSourceGlob } from "./source-glob.ts";
import { type SpecialFile, walkDirectory } from "./walk.ts";

export interface ResolvedSources {
  matches: readonly SourceMatch[];
  warnings: readonly ContextWarning[];
}

/**
 * The files, directories and links that the sources of one COPY or ADD mean, as Docker finds them: a directory
 * stands for its contents, a source that is a link is followed within the context, links below it stay links.
 * https://docs.docker.com/reference/dockerfile/#copy
 *
 * @throws BoughError where a source does not exist, leads out of the context, or can't be read
 */
export async function resolveSources(options: SourceOptions): Promise<ResolvedSources> {
  const search = startSearch(options);
  for (const source of options.sources) {
    if (source === "") throw new BoughError("a source is empty", { hint: "Is a variable in it not set?" });
    if (options.parents === true) await resolveParentsSource(search, source);
    else if (hasWildcard(source)) await resolveGlob(search, source);
    else await resolvePlain(search, source);
  }
  if (search.unmatched.length > 0 && search.matches.length === 0 && search.warnings.length === 0)
    throw nothingMatches(search.unmatched);
  search.warnings.push(...specialWarnings(search.special));
  return { matches: search.matches, warnings: search.warnings };
}

async function resolvePlain(search: Search, source: string): Promise<void> {
  await addSource(search, source, lookUp(search, source, contextPathOf(source)), false);
}

async function resolveGlob(search: Search, source: string): Promise<void> {
  const { base, pattern } = parseSourceGlob(source, contextPathOf(source));
  const start = resolveInContext(search.root, base, search.files);
  if (start.kind === "missing" || !start.stats.isDirectory()) {
    search.unmatched.push(source);
    return;
  }
  const filters = filtersAt(search, start.contextPath);
  const rule = ruleAgainst(search, start);
  if (rule !== undefined) {
    search.warnings.push(leftOut(source, rule));
    return;
  }
  const from = { contextPath: start.contextPath, absolutePath: start.absolutePath, relativePath: base };
  const { paths, ignoredBy } = await expandGlob(from, pattern, filters, search.files, search.pace);
  const before = search.matches.length;
  for (const { contextPath } of paths) {
    await addSource(search, source, lookUp(search, contextPath, contextPath), true);
  }
  if (paths.length === 0 && ignoredBy === undefined) search.unmatched.push(source);
  else if (search.matches.length === before && ignoredBy !== undefined)
    search.warnings.push(leftOut(source, ignoredBy));
}

/** @param fromGlob the source was not named outright: what it can't be is passed over, not an error */
async function addSource(
  search: Search,
  source: string,
  found: FoundPath & { name: string },
  fromGlob: boolean,
): Promise<void> {
  const { name, contextPath, absolutePath, stats } = found;
  const rule = ruleAgainst(search, found);
  if (rule !== undefined) {
    search.warnings.push(leftOut(fromGlob ? contextPath : source, rule));
    return;
  }
  const isDirectory = stats.isDirectory();
  if ((fromGlob || !isDirectory) && isExcluded(search.exclude, [name, contextPath])) return;

  const paths: EntryPaths = { contextPath, absolutePath, relativePath: isDirectory ? "" : name };
  const entry = entryOf(paths, stats, search.files);
  if (entry === undefined) {
    if (!fromGlob) throw specialSource(source, specialKind(stats));
    search.special.push({ kind: specialKind(stats), contextPath });
    return;
  }
  if (!isDirectory) {
    search.matches.push({ source, isDirectory, entries: [entry] });
    return;
  }
  const filters = [...filtersAt(search, contextPath), excludeFilter(search)];
  const walked = await walkDirectory(paths, filters, search.files, search.pace);
  search.special.push(...walked.special);
  if (walked.entries.length === 0 && walked.ignoredBy !== undefined)
    search.warnings.push(leftOut(source, walked.ignoredBy));
  search.matches.push({ source, isDirectory, entries: [entry, ...walked.entries] });
}

function isExcluded(rules: readonly Rule[], paths: readonly string[]): boolean {
  return paths.some((path) => isMatch(enterPath(startRules(rules), path).decision));
}

function nothingMatches(sources: readonly string[]): BoughError {
  const list = sources.map(displayPath).join(", ");
  return new BoughError(`no file in the build context matches ${list}`, {
    hint: "Patterns count from the context directory; `*` does not cross a `/`.",
  });
}

function specialSource(source: string, kind: string): BoughError {
  return new BoughError(
    `${displayPath(source)} is a ${kind}: only files, directories and links can be copied`,
  );
}

const mostNamed = 5;

function specialWarnings(special: readonly SpecialFile[]): ContextWarning[] {
  return Object.entries(Object.groupBy(special, ({ kind }) => kind)).map(([kind, group = []]) => {
    const named = group.slice(0, mostNamed).map(({ contextPath }) => displayPath(contextPath));
    if (group.length > mostNamed) named.push(`and ${group.length - mostNamed} more`);
    return { message: `left out, an image can't be given a ${kind}: ${named.join(", ")}` };
  });
}
