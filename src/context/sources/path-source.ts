import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { excludeFilters } from "../patterns/filters.ts";
import { decidePath, isMatch, type Rule } from "../patterns/rules.ts";
import type { EntryPaths } from "./entry.ts";
import { EntryList } from "./entry-list.ts";
import { entryOf } from "./entry-of.ts";
import { ignoredSource } from "./missing-source.ts";
import { contextPathOf } from "./resolve-path.ts";
import {
  type FoundSource,
  failingRule,
  findSourcePath,
  ignoredSourceWarning,
  ignoreFilters,
  ruleAgainst,
  type SourceResult,
  type SourceSearch,
} from "./search.ts";
import { type LeftOut, leftOut } from "./special-file.ts";
import { walkDirectory } from "./walk.ts";

/** Resolves a source without wildcards. */
export async function resolvePathSource(search: SourceSearch, source: string): Promise<SourceResult> {
  const found = findSourcePath(search, source, contextPathOf(source));
  const { ignoredBy, ...outcome } = await resolveFoundPath(search, source, found, { byName: true });
  const [special] = outcome.special ?? [];
  if (special !== undefined && !found.stats.isDirectory()) throw specialSource(source, special);
  if (ignoredBy === undefined) return outcome;
  // A link that a rule leaves out is missing, even one to the root, which never is.
  const isMissing = outcome.matches.length === 0 && contextPathOf(source) !== "";
  const warning = ignoredSourceWarning(source, ignoredBy);
  return { ...outcome, warnings: [warning], ...(isMissing && { refusal: ignoredSource(source, search) }) };
}

/** Resolves a path that exists. `ignoredBy`: the rule of the context that leaves out all of it. */
export async function resolveFoundPath(
  search: SourceSearch,
  source: string,
  found: FoundSource,
  { byName }: { byName: boolean },
): Promise<SourceResult & { ignoredBy?: Rule }> {
  const { name, contextPath, absolutePath, stats } = found;
  const rule = ruleAgainst(search, found);
  if (rule !== undefined) return { matches: [], ignoredBy: rule };

  // `--exclude` is relative to a directory source without wildcards.
  const isDirectory = stats.isDirectory();
  if (!(byName && isDirectory) && isExcluded(search.exclude, [name, contextPath])) return { matches: [] };

  const paths: EntryPaths = { contextPath, absolutePath, relativePath: isDirectory ? "" : name };
  const entry = entryOf(paths, stats, search.files);
  const skipped =
    entry.type === "special" ? await leftOut(entry.special, contextPath, search.whyLeftOut) : undefined;
  if (skipped !== undefined) return { matches: [], special: [skipped] };
  if (!isDirectory) return { matches: [{ source, isDirectory, entries: EntryList.of(entry) }] };

  const filters = ignoreFilters(search, contextPath);
  const entries = EntryList.of(entry);
  const { special, ignoredBy, excluded } = await walkDirectory(
    paths,
    [...filters, ...excludeFilters(search.exclude)],
    { ...search, entries },
  );
  const isEmptied = entries.length === 1 && ignoredBy !== undefined;
  return {
    matches: isEmptied && failingRule(filters) !== undefined ? [] : [{ source, isDirectory, entries }],
    special,
    ...(isEmptied ? { ignoredBy } : { excluded }),
  };
}

function isExcluded(rules: readonly Rule[], paths: readonly string[]): boolean {
  return rules.length > 0 && paths.some((path) => isMatch(decidePath(rules, path, "effective")));
}

function specialSource(source: string, { kind, reason }: LeftOut): BoughError {
  const why = reason ?? "only files, directories and links can be copied";
  return new BoughError(`${displayPath(source)} is a ${kind}: ${why}`);
}
