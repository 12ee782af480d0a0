/** What the words of a copy mean in an image. */
import { posix } from "node:path";
import { hasWildcard } from "../../context/patterns/glob.ts";
import { compileIgnorePattern } from "../../context/patterns/path-pattern.ts";
import { isMatch, type Rule, type RuleCursor, startRules } from "../../context/patterns/rules.ts";
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
  filter: Filter;
}

/** Where a walk stands among the patterns that it must and must not match. */
export class Filter {
  static readonly all = new Filter([]);
  readonly #rules: readonly { cursor: RuleCursor; keepsMatched: boolean }[];

  constructor(rules: readonly { cursor: RuleCursor; keepsMatched: boolean }[]) {
    this.#rules = rules;
  }

  keeps(name: Path): boolean {
    return this.#rules.every(
      ({ cursor, keepsMatched }) => isMatch(cursor.decide(textOf(name))) === keepsMatched,
    );
  }

  /** Returns whether anything below a directory that is not kept may be. */
  mayKeepBelow(name: Path): boolean {
    const text = textOf(name);
    return this.#rules.every(
      ({ cursor, keepsMatched }) =>
        isMatch(cursor.decide(text)) === keepsMatched || cursor.mayDifferBelow(text),
    );
  }

  enter(name: Path): Filter {
    if (this.#rules.length === 0) return this;
    const text = textOf(name);
    return new Filter(this.#rules.map((rule) => ({ ...rule, cursor: rule.cursor.enter(text) })));
  }
}

/**
 * @throws BoughError where a word without a wildcard names nothing, and for a pattern that is none
 */
export async function selectSources(selection: Selection, tree: ImageTree): Promise<SelectedSource[]> {
  const excluded =
    selection.exclude.length === 0 ? [] : [{ cursor: startRules(selection.exclude), keepsMatched: false }];
  if (!selection.parents) {
    const filter = excluded.length === 0 ? Filter.all : new Filter(excluded);
    return (await resolveCopySources(selection.sources, tree)).map((source) => ({ ...source, filter }));
  }
  const selected: SelectedSource[] = [];
  for (const word of selection.sources) {
    const { base, below } = splitAtPivot(word);
    // What no wildcard stands for must be there.
    if (!hasWildcard(base) && !hasWildcard(below)) await resolveCopySources([posix.join(base, below)], tree);
    const included = below === "" ? [] : [{ cursor: startRules([includeRule(below)]), keepsMatched: true }];
    const filter = new Filter([...excluded, ...included]);
    for (const source of await resolveCopySources([base], tree))
      if (source.type === "directory") selected.push({ ...source, filter });
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

function includeRule(below: string): Rule {
  return { text: below, isNegated: false, pattern: compileIgnorePattern(below), origin: { kind: "flag" } };
}

/** A name that is no UTF-8 is matched byte by byte. */
function textOf(name: Path): string {
  return typeof name === "string" ? name : name.toString("latin1");
}
