import type micromatch from "micromatch";
import { BoughError } from "../../errors.ts";

/**
 * A token of the glob language of `.dockerignore`, `--exclude` and COPY sources: Go's `filepath.Match`, with `**` added for
 * ignore rules. https://pkg.go.dev/path/filepath#Match
 *
 * Patterns are read here, since micromatch takes `a**` for `a*`, and an invalid pattern such as `a[` for a name, which Go refuses. It
 * compiles the parts that mean the same to both.
 */
export type GlobToken =
  | { kind: "character"; character: string }
  /** `?` */
  | { kind: "any" }
  /** `*` */
  | { kind: "star" }
  /** `**`, with a `/` after it if there is one. */
  | { kind: "deep" }
  /** `[a-z]`, as text that micromatch reads the same way. */
  | { kind: "class"; glob: string; matchesSlash: boolean };

/** Thrown for a pattern that is `ErrBadPattern` to Go's `filepath.Match`; the message says what is wrong with it. */
export class GlobSyntaxError extends Error {}

/** Compiles the pattern of `word`. If it is invalid, the error says so and names `word`. */
export function validPattern<Pattern>(word: string, compile: () => Pattern, hint?: string): Pattern {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof GlobSyntaxError)) throw error;
    throw new BoughError(`${word} is not a valid pattern: ${error.message}`, {
      kind: "usage",
      hint,
    });
  }
}

/** @throws GlobSyntaxError */
export function tokenizeGlob(pattern: string, options: { doubleStar: boolean }): GlobToken[] {
  const characters = Array.from(pattern);
  const tokens: GlobToken[] = [];
  for (let at = 0; at < characters.length; ) {
    const character = characters[at++] as string;
    switch (character) {
      case "\\": {
        const escaped = characters[at++];
        if (escaped === undefined) throw new GlobSyntaxError("it ends with a backslash that escapes nothing");
        tokens.push({ kind: "character", character: escaped });
        break;
      }
      case "?":
        tokens.push({ kind: "any" });
        break;
      case "*": {
        const isDeep = options.doubleStar && characters[at] === "*";
        if (isDeep) at += characters[at + 1] === "/" ? 2 : 1;
        const kind = isDeep ? "deep" : "star";
        if (tokens.at(-1)?.kind !== kind) tokens.push({ kind });
        break;
      }
      case "[": {
        const { token, next } = readClass(characters, at);
        tokens.push(token);
        at = next;
        break;
      }
      default:
        tokens.push({ kind: "character", character });
    }
  }
  return tokens;
}

/** Returns true if a path has a wildcard that is not escaped. */
export function hasWildcard(path: string): boolean {
  return /^(?:[^\\*?[]|\\.)*[*?[]/s.test(path);
}

/** Escapes all wildcards in a path. */
export function escapeGlob(path: string): string {
  return path.replace(/[*?[\\]/g, (character) => (character === "\\" ? "\\\\" : `[${character}]`));
}

export function unescapeGlob(path: string): string {
  return path.replace(/\\(.)/gs, "$1");
}

export type NameMatcher = (name: string) => boolean;

/**
 * Returns a matcher for a single name; the tokens must have no `/` and no `deep`. Matching takes time proportional to the name's
 * length times the pattern's, for every pattern: it is split at its stars, and as nothing between two stars can backtrack, each
 * part is searched for once, from left to right.
 */
export function compileName(tokens: readonly GlobToken[]): NameMatcher {
  const parts = splitAtStars(tokens);
  const [first = [], ...rest] = parts;
  const literal = literalText(first);
  if (rest.length === 0) {
    if (literal !== undefined) return (name) => name === literal;
    const whole = compilePart(first, "^", "$");
    return (name) => whole.test(name);
  }
  const last = rest.pop() ?? [];
  const startsRight = compileStart(first);
  const endsRight = compileEnd(last);
  const middle = rest.map((part) => compilePart(part, "", "", "g"));
  return (name) => {
    let from = startsRight(name);
    if (from < 0) return false;
    const until = endsRight(name);
    if (until < from) return false;
    for (const part of middle) {
      part.lastIndex = from;
      if (!part.test(name)) return false;
      from = part.lastIndex;
    }
    return from <= until;
  };
}

/** Returns a function that returns the index after the first part, or -1. */
function compileStart(tokens: readonly GlobToken[]): (name: string) => number {
  const literal = literalText(tokens);
  if (literal !== undefined) return (name) => (name.startsWith(literal) ? literal.length : -1);
  const start = compilePart(tokens, "^", "");
  return (name) => start.exec(name)?.[0].length ?? -1;
}

/** Returns a function that returns the index of the last part, or -1. */
function compileEnd(tokens: readonly GlobToken[]): (name: string) => number {
  const literal = literalText(tokens);
  if (literal !== undefined) return (name) => (name.endsWith(literal) ? name.length - literal.length : -1);
  const end = compilePart(tokens, "", "$");
  return (name) => end.exec(name)?.index ?? -1;
}

function compilePart(tokens: readonly GlobToken[], before: string, after: string, flags = ""): RegExp {
  // Loaded only for `?` and classes: most builds have neither, and loading takes longer than their matching.
  const { makeRe }: typeof micromatch = require("micromatch");
  const { source } = makeRe(tokens.map(globText).join(""), {
    contains: true,
    dot: true,
    fastpaths: false,
    keepQuotes: true,
    // Otherwise `[0]` matches the text "[0]" as well.
    literalBrackets: false,
    nobrace: true,
    noextglob: true,
    nonegate: true,
    regex: false,
    strictSlashes: true,
  } as micromatch.Options);
  return new RegExp(`${before}${source}${after}`, `${flags}su`);
}

function globText(token: GlobToken): string {
  switch (token.kind) {
    case "character":
      return /[\\^$.*+?()[\]{}|]/.test(token.character) ? `\\${token.character}` : token.character;
    case "any":
      return "?";
    case "class":
      return token.glob;
    case "star":
    case "deep":
      return "*";
  }
}

/** Returns the text that the tokens match, if there is only one. */
export function literalText(tokens: readonly GlobToken[]): string | undefined {
  let text = "";
  for (const token of tokens) {
    if (token.kind !== "character") return undefined;
    text += token.character;
  }
  return text;
}

function splitAtStars(tokens: readonly GlobToken[]): GlobToken[][] {
  const parts: GlobToken[][] = [[]];
  for (const token of tokens) {
    if (token.kind === "star") parts.push([]);
    else parts.at(-1)?.push(token);
  }
  // Two adjacent stars are one.
  return parts.filter((part, index) => part.length > 0 || index === 0 || index === parts.length - 1);
}

function readClass(characters: readonly string[], start: number): { token: GlobToken; next: number } {
  let at = start;
  const negated = characters[at] === "^";
  if (negated) at++;
  let glob = negated ? "[^" : "[";
  let hasSlash = false;
  const readBound = (): string => {
    let bound = characters[at++];
    if (bound === "-") throw new GlobSyntaxError("a `-` in a character class must be escaped with `\\`");
    if (bound === "]") throw new GlobSyntaxError("it has an empty or incomplete character class");
    if (bound === "\\") bound = characters[at++];
    if (bound === undefined) throw new GlobSyntaxError("it has a character class without a closing `]`");
    return bound;
  };
  do {
    const low = readBound();
    let high = low;
    if (characters[at] === "-") {
      at++;
      high = readBound();
      if (codePoint(low) > codePoint(high))
        throw new GlobSyntaxError(`the range \`${low}-${high}\` is empty`);
    }
    if (codePoint(low) <= slash && slash <= codePoint(high)) hasSlash = true;
    glob += low === high ? classText(low) : `${classText(low)}-${classText(high)}`;
    if (at >= characters.length) throw new GlobSyntaxError("it has a character class without a closing `]`");
  } while (characters[at] !== "]");
  return { token: { kind: "class", glob: `${glob}]`, matchesSlash: hasSlash !== negated }, next: at + 1 };
}

const slash = 0x2f;

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}

function classText(character: string): string {
  return /[\\\]^[-]/.test(character) ? `\\${character}` : character;
}
