import type { NameMatcher } from "./glob.ts";
import {
  endsAt,
  enterDirectory,
  type PathPattern,
  type PatternPosition,
  patternStart,
} from "./path-pattern.ts";

/** A pattern and the place where it is written, for messages. */
export interface Rule {
  /** The line as written, with its `!`. */
  text: string;
  isNegated: boolean;
  pattern: PathPattern;
  origin: RuleOrigin;
}

export type RuleOrigin =
  | { kind: "file"; path: string; line: number }
  | { kind: "default" }
  /** `--exclude` of an instruction. */
  | { kind: "flag" };

/**
 * Which of the rules that match a directory count for what is in it: `every` one, as the specification says, or, as in BuildKit, those
 * `effective` there, that is, rules that changed the decision about the directory. After `docs/a*` and `!docs`,
 * `docs/ab` is left out: the second rule changed nothing for `docs`.
 */
export type RuleInheritance = "every" | "effective";

/**
 * The position of a walk in ordered rules. A rule matches a path if its pattern matches the path or, see `RuleInheritance`, a directory
 * above it. The last rule that matches decides, as in `.dockerignore`.
 */
export interface RuleCursor {
  /** The rule that decides about this directory itself. A negated one means that it does not count as matched. */
  readonly decision: Rule | undefined;
  /** True if the decision for a path below this directory can differ from the directory's. */
  readonly mayDiffer: boolean;
  /** Returns the rule that decides about `name` in this directory. */
  decide(name: string): Rule | undefined;
  /** Returns false if the decision for `name` certainly applies to everything below it. */
  mayDifferBelow(name: string): boolean;
  enter(name: string): RuleCursor;
}

export function startRules(rules: readonly Rule[], inheritance: RuleInheritance): RuleCursor {
  return new Cursor(
    { rules, inheritance },
    -1,
    rules.map(({ pattern }, index) => ({ index, pattern, position: patternStart })),
  );
}

/** Returns the rule that decides about a path: relative, with `/`, without `.` and `..`. */
export function decidePath(
  rules: readonly Rule[],
  path: string,
  inheritance: RuleInheritance,
): Rule | undefined {
  return enterPath(startRules(rules, inheritance), path).decision;
}

export function enterPath(cursor: RuleCursor, path: string): RuleCursor {
  return path === "" ? cursor : path.split("/").reduce((at, name) => at.enter(name), cursor);
}

export function isMatch(decision: Rule | undefined): boolean {
  return decision !== undefined && !decision.isNegated;
}

interface RuleList {
  rules: readonly Rule[];
  inheritance: RuleInheritance;
}

interface LiveRule {
  index: number;
  pattern: PathPattern;
  position: PatternPosition;
}

/** The number of names remembered for a directory: enough for those that instructions name, not for a large context. */
const maxRemembered = 100;

class Cursor implements RuleCursor {
  readonly decision: Rule | undefined;
  readonly mayDiffer: boolean;
  private readonly list: RuleList;
  private readonly decisionIndex: number;
  /** Rules after the decision that can match something below, in order. */
  private readonly live: readonly LiveRule[];
  /** The index of the last rule that is not negated, and of the last negated one; -1 if there is none. */
  private readonly lastPlain: number;
  private readonly lastNegated: number;
  private names: NameTable | undefined;
  private readonly entered = new Map<string, RuleCursor>();

  constructor(list: RuleList, decisionIndex: number, live: readonly LiveRule[]) {
    const { rules } = list;
    this.list = list;
    this.decisionIndex = decisionIndex;
    this.live = live;
    this.decision = rules[decisionIndex];
    const lastOf = (isNegated: boolean) =>
      live.findLast(({ index }) => rules[index]?.isNegated === isNegated)?.index ?? -1;
    this.lastPlain = lastOf(false);
    this.lastNegated = lastOf(true);
    this.mayDiffer = this.isUndecidedAfter(decisionIndex);
  }

  decide(name: string): Rule | undefined {
    return this.list.rules[this.decideIndex(name)];
  }

  mayDifferBelow(name: string): boolean {
    return this.isUndecidedAfter(this.inheritedIndex(name));
  }

  enter(name: string): RuleCursor {
    const known = this.entered.get(name);
    if (known !== undefined) return known;
    const cursor = this.at(name);
    if (this.entered.size < maxRemembered) this.entered.set(name, cursor);
    return cursor;
  }

  private at(name: string): RuleCursor {
    const decisionIndex = this.inheritedIndex(name);
    const live: LiveRule[] = [];
    let isSame = decisionIndex === this.decisionIndex;
    for (const rule of this.live) {
      if (rule.index <= decisionIndex) continue;
      const position = enterDirectory(rule.pattern, rule.position, name);
      isSame &&= isSamePosition(position, rule.position);
      if (position.length > 0) live.push({ index: rule.index, pattern: rule.pattern, position });
    }
    // Most directories are equal to the one above them, so the table of names is shared.
    return isSame ? this : new Cursor(this.list, decisionIndex, live);
  }

  /** Returns true if a rule after that one could change the decision. */
  private isUndecidedAfter(index: number): boolean {
    return (isMatch(this.list.rules[index]) ? this.lastNegated : this.lastPlain) > index;
  }

  private decideIndex(name: string): number {
    this.names ??= tabulate(this.live);
    const { literals, others } = this.names;
    const literal = literals.get(name)?.at(-1) ?? this.decisionIndex;
    for (const { index, matches } of others) {
      if (index <= literal) break;
      if (matches(name)) return index;
    }
    return literal;
  }

  /** Returns the index of the rule that decides about what is in the directory `name`, unless a later one does. */
  private inheritedIndex(name: string): number {
    const { rules, inheritance } = this.list;
    if (inheritance === "every") return this.decideIndex(name);
    this.names ??= tabulate(this.live);
    const { literals, others } = this.names;
    const matching = others.flatMap(({ index, matches }) => (matches(name) ? [index] : []));
    let effective = this.decisionIndex;
    for (const index of [...matching, ...(literals.get(name) ?? [])].sort((one, other) => one - other))
      if (isMatch(rules[index]) !== isMatch(rules[effective])) effective = index;
    return effective;
  }
}

/** Rules by the names that they match in a directory. Most match only one name and need not be tried for others. */
interface NameTable {
  /** The indexes of the rules for each name, in order. */
  literals: ReadonlyMap<string, readonly number[]>;
  /** The other rules, the last one first. */
  others: readonly { index: number; matches: NameMatcher }[];
}

function tabulate(live: readonly LiveRule[]): NameTable {
  const literals = new Map<string, number[]>();
  const others: { index: number; matches: NameMatcher }[] = [];
  for (const { index, pattern, position } of live) {
    for (const { literal, matches } of endsAt(pattern, position)) {
      if (literal === undefined) others.push({ index, matches });
      else literals.getOrInsertComputed(literal, () => []).push(index);
    }
  }
  return { literals, others: others.reverse() };
}

function isSamePosition(one: PatternPosition, other: PatternPosition): boolean {
  return one.length === other.length && one.every((state, at) => state === other[at]);
}
