/** What the words of a copy mean in an image. */
import { posix } from "node:path";
import { excludeFilters, type Filter, includeFilters } from "../../context/patterns/filters.ts";
import { hasWildcard } from "../../context/patterns/glob.ts";
import type { Rule } from "../../context/patterns/rules.ts";
import { type CopySource, type ImageTree, resolveCopySources } from "../../image/copy-sources.ts";
import type { Path } from "./path.ts";

/** What is taken from an image's file system, as COPY has it. */
export interface Selection {
  sources: readonly string[];
  /** Directories on the way are copied along: `COPY --parents`. */
  parents: boolean;
  exclude: readonly Rule[];
}

/** A source, and which of what is below it is meant. */
export interface SelectedSource extends CopySource {
  filters: readonly Filter[];
}

/**
 * @throws BoughError where a word without a wildcard names nothing, and for a pattern that is none
 */
export async function selectSources(selection: Selection, tree: ImageTree): Promise<SelectedSource[]> {
  const filters = excludeFilters(selection.exclude);
  if (!selection.parents)
    return (await resolveCopySources(selection.sources, tree)).map((source) => ({ ...source, filters }));
  const selected: SelectedSource[] = [];
  for (const word of selection.sources) {
    const { base, below } = splitAtPivot(word);
    // What no wildcard stands for must be there.
    if (!hasWildcard(base) && !hasWildcard(below)) await resolveCopySources([posix.join(base, below)], tree);
    const own = [...filters, ...includeFilters(below, JSON.stringify(word))];
    for (const source of await resolveCopySources([base], tree))
      if (source.type === "directory") selected.push({ ...source, filters: own });
  }
  return selected;
}

/** `/./` in a word of `--parents` ends what is not copied along. */
function splitAtPivot(word: string): { base: string; below: string } {
  const pivot = word.indexOf("/./");
  const base = posix.join("/", pivot < 0 ? "" : word.slice(0, pivot));
  const below = posix.join("/", pivot < 0 ? word : word.slice(pivot + "/./".length));
  return { base, below: below.replace(/^\/|\/$/g, "") };
}

/** A name that is not UTF-8 is matched byte by byte. */
export function textOf(name: Path): string {
  return typeof name === "string" ? name : name.toString("latin1");
}
