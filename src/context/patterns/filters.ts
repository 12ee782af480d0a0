import { validPattern } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { isMatch, type Rule, type RuleCursor, startRules } from "./rules.ts";

/** Ordered rules that decide if a path is kept: by matching it, or by not matching it. */
export interface Filter {
  cursor: RuleCursor;
  keepsMatched: boolean;
}

/** Returns the filter of `--exclude`, relative to the copied directory; none without the flag. */
export function excludeFilters(exclude: readonly Rule[]): Filter[] {
  return exclude.length === 0 ? [] : [{ cursor: startRules(exclude, "effective"), keepsMatched: false }];
}

/**
 * Returns the filter for the part of a `--parents` source after its pivot; none if that is empty.
 *
 * @throws BoughError that says that `source` is not a valid pattern
 */
export function includeFilters(pattern: string, source: string): Filter[] {
  if (pattern === "") return [];
  const compiled = validPattern(source, () => compileIgnorePattern(pattern));
  const rule: Rule = { text: "", isNegated: false, pattern: compiled, origin: { kind: "flag" } };
  return [{ cursor: startRules([rule], "effective"), keepsMatched: true }];
}

export function passesAll(filters: readonly Filter[], name: string): boolean {
  for (const filter of filters) if (!passes(filter, filter.cursor.decide(name))) return false;
  return true;
}

/** Returns true if something below a directory may pass even if the directory does not. */
export function mayPassBelow(filters: readonly Filter[], name: string): boolean {
  return filters.every(
    (filter) => passes(filter, filter.cursor.decide(name)) || filter.cursor.mayDifferBelow(name),
  );
}

export function enterFilters(filters: readonly Filter[], name: string): Filter[] {
  return filters.map(({ cursor, keepsMatched }) => ({ cursor: cursor.enter(name), keepsMatched }));
}

/** Returns true if the filters' directory, or something below it, may pass them all. */
export function mayKeepBelow(filters: readonly Filter[]): boolean {
  return filters.every((filter) => passes(filter, filter.cursor.decision) || filter.cursor.mayDiffer);
}

export function passes(filter: Filter, decision: Rule | undefined): boolean {
  return isMatch(decision) === filter.keepsMatched;
}
