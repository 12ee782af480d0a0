import {
  compileName,
  GlobSyntaxError,
  type GlobToken,
  literalText,
  type NameMatcher,
  tokenizeGlob,
} from "./glob.ts";

/**
 * A pattern for whole paths. It is matched one name at a time, from the root down. So a walk tests only a file's own name, and
 * knows of a directory if anything below it can match.
 *
 * It is a small automaton. Between two names it is in some of its states. A state's steps list the names that lead to another
 * state.
 */
export interface PathPattern {
  readonly states: readonly PatternState[];
}

interface PatternState {
  /** True for a `**`: every name leads back to this state. */
  repeats: boolean;
  steps: readonly PatternStep[];
  /** The names that complete the pattern here. */
  ends: readonly PatternEnd[];
}

interface PatternEnd {
  /** The only name that matches; `undefined` if there are several. */
  literal: string | undefined;
  matches: NameMatcher;
}

interface PatternStep {
  matches: NameMatcher;
  to: number;
}

export type PatternPosition = readonly number[];

export const patternStart: PatternPosition = [0];

/** Returns true if `name`, in the directory of `position`, completes a match. */
export function isMatched(pattern: PathPattern, position: PatternPosition, name: string): boolean {
  return endsAt(pattern, position).some(({ matches }) => matches(name));
}

/** Returns the ends of the pattern in the directory of `position`. */
export function endsAt(pattern: PathPattern, position: PatternPosition): PatternEnd[] {
  return position.flatMap((index) => pattern.states[index]?.ends ?? []);
}

/** Returns the position in the directory `name`; empty if nothing below it can match. */
export function enterDirectory(
  pattern: PathPattern,
  position: PatternPosition,
  name: string,
): PatternPosition {
  const next = new Set<number>();
  for (const index of position) {
    const state = pattern.states[index];
    if (state === undefined) continue;
    if (state.repeats) next.add(index);
    for (const step of state.steps) if (!next.has(step.to) && step.matches(name)) next.add(step.to);
  }
  return [...next];
}

/**
 * Compiles a pattern as moby's patternmatcher reads it, cleaned and without a leading `/`. A pattern that ends in `**` matches
 * the first name that this can stand for, since callers treat everything below a match as matched.
 *
 * moby accidentally passes some parts to Go's regular expressions. Here `filepath.Match` decides these: wildcards in a class,
 * `^`, and a backslash before a letter are literal; `**` also matches names with line breaks.
 *
 * @throws GlobSyntaxError
 */
export function compileIgnorePattern(pattern: string): PathPattern {
  const tokens = tokenizeGlob(checkLength(pattern), { doubleStar: true });
  if (tokens.at(-1)?.kind === "deep") tokens.push({ kind: "star" });
  // Docker reads `**name` as "ends in name" if the rest has no special characters.
  const isSuffix = /^\*\*[^/*?[\]\\]/.test(pattern) && !/[*?[\]\\]/.test(pattern.slice(2));
  if (isSuffix) tokens.splice(1, 0, { kind: "star" });
  return compile(tokens);
}

/**
 * Compiles a pattern for Go's `filepath.Match`, as used in COPY and ADD sources: `**` means the same as `*`.
 *
 * @throws GlobSyntaxError
 */
export function compileSourcePattern(pattern: string): PathPattern {
  return compile(tokenizeGlob(checkLength(pattern), { doubleStar: false }));
}

const maxPatternLength = 4096;

function checkLength(pattern: string): string {
  if (pattern.length > maxPatternLength)
    throw new GlobSyntaxError(`it is longer than ${maxPatternLength} characters`);
  return pattern;
}

/** A place in a pattern where a path may, or must, continue in the next directory. */
interface Break {
  at: number;
  kind: "slash" | "class" | "gap";
}

/** Real patterns have fewer; the steps of a match grow with the square of the number. */
const maxOptionalBreaks = 64;

function compile(tokens: readonly GlobToken[]): PathPattern {
  const breaks: Break[] = [];
  const repeating = new Set<number>();
  tokens.forEach((token, at) => {
    const atStart = at === 0 || breaks.at(-1)?.at === at - 1;
    if (token.kind === "character" && token.character === "/") breaks.push({ at, kind: "slash" });
    else if (token.kind === "class" && token.matchesSlash) breaks.push({ at, kind: "class" });
    else if (token.kind === "deep" && atStart && breaks.at(-1)?.kind !== "class")
      repeating.add(breaks.length);
    else if (token.kind === "deep") breaks.push({ at, kind: "gap" });
  });
  if (breaks.filter(({ kind }) => kind !== "slash").length > maxOptionalBreaks)
    throw new GlobSyntaxError(`it has more than ${maxOptionalBreaks} wildcards that can match a \`/\``);

  const states: PatternState[] = [];
  for (let from = 0; from <= breaks.length; from++) {
    const start = from === 0 ? 0 : (breaks[from - 1]?.at ?? 0) + 1;
    const steps: PatternStep[] = [];
    const ends: PatternEnd[] = [];
    for (let to = from; to <= breaks.length; to++) {
      const end = breaks[to];
      const label = tokens.slice(start, end?.at ?? tokens.length).filter(({ kind }) => kind !== "deep");
      if (end?.kind === "gap") label.push({ kind: "star" });
      if (label.length > 0) {
        const matches = compileLater(label);
        if (end === undefined) ends.push({ literal: literalText(label), matches });
        else steps.push({ matches, to: to + 1 });
      }
      if (end?.kind === "slash") break;
    }
    const repeats = repeating.has(from) || (from > 0 && breaks[from - 1]?.kind === "gap");
    states.push({ repeats, steps, ends });
  }
  return { states };
}

function compileLater(tokens: readonly GlobToken[]): NameMatcher {
  let compiled: NameMatcher | undefined;
  return (name) => {
    compiled ??= compileName(tokens);
    return compiled(name);
  };
}
