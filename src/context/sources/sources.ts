import { BoughError } from "../../errors.ts";
import { createPace } from "../../pace.ts";
import { type BuildContext, describeContext } from "../build-context.ts";
import { displayPath } from "../file-system/display-path.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import { excludeFilters, type Filter, includeFilters } from "../patterns/filters.ts";
import { escapeGlob, hasWildcard } from "../patterns/glob.ts";
import { ambiguousFirst, type IgnoreRules, parseExcludeFlags, startIgnoreRules } from "../patterns/ignore.ts";
import type { ContextWarning } from "./entry.ts";
import { EntryList, type SourceMatch } from "./entry-list.ts";
import { expandGlob, resolveGlobSource } from "./glob-source.ts";
import { resolvePathSource } from "./path-source.ts";
import { contextPathOf, isAboveRoot, resolveInContext } from "./resolve-path.ts";
import {
  type FoundSource,
  findSourcePath,
  ignoredSourceWarning,
  ignoreFilters,
  ruleAgainst,
  type SourceResult,
  type SourceSearch,
} from "./search.ts";
import { leftOutWarnings, type WhyLeftOut } from "./special-file.ts";
import { type WalkResult, walkDirectory } from "./walk.ts";

interface SourceOptions {
  context: BuildContext;
  ignore: IgnoreRules;
  /** The source words of one COPY or ADD, expanded, without URLs and here-documents. */
  sources: readonly string[];
  /** `--exclude`: patterns relative to a directory source; for a file, patterns of its name or path. */
  exclude?: readonly string[];
  /** `--parents` */
  parents?: boolean;
  /** Decides about pipes, sockets and devices. Default: all are left out. */
  whyLeftOut?: WhyLeftOut | undefined;
  signal?: AbortSignal;
  files: FileSystem;
}

export interface ResolvedSources {
  matches: readonly SourceMatch[];
  /** The number of matches of each source word, in order. */
  counts: readonly number[];
  warnings: readonly ContextWarning[];
  /** Paths that default excludes left out of the matches, relative to the context, the most surprising first. */
  excluded: readonly string[];
  /** Docker's reason to refuse the instruction; by default it is only a warning. */
  refusal?: BoughError | undefined;
}

/**
 * Finds the files, directories and links of one COPY or ADD's sources, as Docker does: a directory stands for its contents; a
 * source that is a link is followed within the context; links below it stay links. With `--parents` a match has no entry for the
 * directory itself. https://docs.docker.com/reference/dockerfile/#copy
 *
 * @throws BoughError if a source without wildcards does not exist, a link leads out of the context, or something can't be read
 */
export async function resolveSources(options: SourceOptions): Promise<ResolvedSources> {
  const search = startSearch(options);
  const outcomes: SourceResult[] = [];
  for (const source of options.sources)
    outcomes.push(await resolveSource(search, source, options.parents === true));

  const matches = outcomes.flatMap((outcome) => outcome.matches);
  const warnings = outcomes.flatMap((outcome) => outcome.warnings ?? []);
  const unmatched = options.sources.filter((_, index) => outcomes[index]?.isUnmatched === true);
  if (unmatched.length > 0 && matches.length === 0 && warnings.length === 0)
    warnings.push(nothingMatches(search, unmatched));
  warnings.push(...options.sources.flatMap((source) => wordWarnings(source, search)));
  const special = outcomes.flatMap((outcome) => outcome.special ?? []);
  const excluded = ambiguousFirst(new Set(outcomes.flatMap((outcome) => outcome.excluded ?? [])));
  const counts = outcomes.map((outcome) => outcome.matches.length);
  const refusal = outcomes.find((outcome) => outcome.refusal !== undefined)?.refusal;
  return { matches, counts, warnings: [...warnings, ...leftOutWarnings(special)], excluded, refusal };
}

function startSearch({
  context,
  ignore,
  exclude = [],
  whyLeftOut,
  signal,
  files,
}: SourceOptions): SourceSearch {
  return {
    root: context.realPath,
    context,
    ignore: startIgnoreRules(ignore).map((cursor) => ({ cursor, keepsMatched: false })),
    exclude: parseExcludeFlags(exclude),
    files,
    whyLeftOut,
    pace: createPace(signal),
  };
}

async function resolveSource(search: SourceSearch, source: string, parents: boolean): Promise<SourceResult> {
  if (parents) return await resolveParentsSource(search, source);
  return hasWildcard(source)
    ? await resolveGlobSource(search, source)
    : await resolvePathSource(search, source);
}

/** BuildKit copies nothing in this case (`COPY requirements.tx[t] .` is a common way to copy a file that may be missing). */
function nothingMatches(search: SourceSearch, sources: readonly string[]): ContextWarning {
  const literal = sources.find((source) => isFound(search, contextPathOf(source)));
  const advice =
    literal === undefined ? "" : `; to copy the file of that name, write ${displayPath(escapeGlob(literal))}`;
  const names = sources.map(displayPath).join(", ");
  return {
    rule: "CopyMatchesNothing",
    subject: names,
    message: `nothing is copied: no file in ${describeContext(search.context)} matches ${names}${advice}`,
  };
}

function wordWarnings(source: string, { context }: SourceSearch): ContextWarning[] {
  const where = describeContext(context);
  if (source === "") {
    const whole = where.replace(/^the /, "the whole ");
    const message = `a source is empty after its variables are replaced, so it means ${whole}, as in Docker`;
    return [{ rule: "EmptySource", subject: source, message }];
  }
  if (!isAboveRoot(source)) return [];
  const meant = displayPath(contextPathOf(source) || ".");
  const message = `${displayPath(source)} is outside ${where}: as in Docker, ${meant} in the context is used instead`;
  return [{ rule: "SourceAboveContext", subject: source, message }];
}

function isFound(search: SourceSearch, path: string): boolean {
  return resolveInContext(search.root, path, search.files, search.context).kind === "found";
}

/**
 * Resolves a source of `COPY --parents`. Its matches keep their directories, from the context root or from a pivot point `/./`
 * on. The part after the pivot may have `**`. Links are not followed.
 * https://docs.docker.com/reference/dockerfile/#copy---parents
 */
async function resolveParentsSource(search: SourceSearch, source: string): Promise<SourceResult> {
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
  from: FoundSource,
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
function requireNoLink(source: string, found: FoundSource): void {
  const link = found.links[0];
  if (link === undefined) return;
  throw new BoughError(
    `${displayPath(source)}: ${displayPath(link)} is a symbolic link, which --parents does not follow`,
    { hint: `Name its target instead: ${displayPath(found.contextPath)}.` },
  );
}
