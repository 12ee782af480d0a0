import { validPattern } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { isMatch, type Rule, type RuleCursor, startRules } from "./rules.ts";

/** Ordered rules that a path has to pass: to be kept it must be matched by them, or must not be. */
export interface Filter {
  cursor: RuleCursor;
  keepsMatched: boolean;
}

/** `--exclude`, relative to the directory that is copied; none where there is no such flag. */
export function excludeFilters(exclude: readonly Rule[]): Filter[] {
  return exclude.length === 0 ? [] : [{ cursor: startRules(exclude), keepsMatched: false }];
}

/**
 * What stands behind the pivot of a source of `--parents`; none where nothing does.
 *
 * @throws BoughError that says that `source`, as shown, is not a valid pattern
 */
export function includeFilters(pattern: string, source: string): Filter[] {
  if (pattern === "") return [];
  const compiled = validPattern(source, () => compileIgnorePattern(pattern));
  const rule: Rule = { text: "", isNegated: false, pattern: compiled, origin: { kind: "flag" } };
  return [{ cursor: startRules([rule]), keepsMatched: true }];
}

export function passesAll(filters: readonly Filter[], name: string): boolean {
  for (const filter of filters) if (!passes(filter, filter.cursor.decide(name))) return false;
  return true;
}

/** Returns whether anything below a directory that does not pass may. */
export function mayPassBelow(filters: readonly Filter[], name: string): boolean {
  return filters.every(
    (filter) => passes(filter, filter.cursor.decide(name)) || filter.cursor.mayDifferBelow(name),
  );
}

export function enterFilters(filters: readonly Filter[], name: string): Filter[] {
  return filters.map(({ cursor, keepsMatched }) => ({ cursor: cursor.enter(name), keepsMatched }));
}

/** Returns whether the directory that the filters stand at, or anything below it, can pass them all. */
export function mayKeepBelow(filters: readonly Filter[]): boolean {
  return filters.every((filter) => passes(filter, filter.cursor.decision) || filter.cursor.mayDiffer);
}

export function passes(filter: Filter, decision: Rule | undefined): boolean {
  return isMatch(decision) === filter.keepsMatched;
}
