/** Resolves the source words of a COPY in an image. */
import { posix } from "node:path";
import { excludeFilters, type Filter, includeFilters } from "../../context/patterns/filters.ts";
import { hasWildcard } from "../../context/patterns/glob.ts";
import type { Rule } from "../../context/patterns/rules.ts";
import { type ImageTree, type ResolvedSource, resolveCopySources } from "../../image/copy-sources.ts";
import type { Path } from "../system/path.ts";

/** The files of an image that a COPY names. */
export interface Selection {
  sources: readonly string[];
  /** `COPY --parents`: parent directories are copied too. */
  parents: boolean;
  exclude: readonly Rule[];
}

/** A source, and the filters for what is below it. */
export interface SelectedSource extends ResolvedSource {
  filters: readonly Filter[];
}

/**
 * @throws BoughError if a word without a wildcard names nothing, or a pattern is invalid
 */
export async function selectSources(selection: Selection, tree: ImageTree): Promise<SelectedSource[]> {
  const filters = excludeFilters(selection.exclude);
  if (!selection.parents)
    return (await resolveCopySources(selection.sources, tree)).map((source) => ({ ...source, filters }));
  const selected: SelectedSource[] = [];
  for (const word of selection.sources) {
    const { base, below } = splitAtPivot(word);
    // A word without a wildcard must name something.
    if (!hasWildcard(base) && !hasWildcard(below)) await resolveCopySources([posix.join(base, below)], tree);
    const own = [...filters, ...includeFilters(below, JSON.stringify(word))];
    for (const source of await resolveCopySources([base], tree))
      if (source.type === "directory") selected.push({ ...source, filters: own });
  }
  return selected;
}

/** Splits a word of `--parents` at `/./`: the directories before it are not copied. */
function splitAtPivot(word: string): { base: string; below: string } {
  const pivot = word.indexOf("/./");
  const base = posix.join("/", pivot < 0 ? "" : word.slice(0, pivot));
  const below = posix.join("/", pivot < 0 ? word : word.slice(pivot + "/./".length));
  return { base, below: below.replace(/^\/|\/$/g, "") };
}

/** Returns a name as text for patterns. A name that is not UTF-8 is matched byte by byte. */
export function textOf(name: Path): string {
  return typeof name === "string" ? name : name.toString("latin1");
}
