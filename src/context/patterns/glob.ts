import type micromatch from "micromatch";
import { BoughError } from "../../errors.ts";

/**
 * The glob language of `.dockerignore`, `--exclude` and COPY sources: Go's `filepath.Match`, and for ignore
 * rules `**` on top of it. https://pkg.go.dev/path/filepath#Match
 */
export type GlobToken =
  | { kind: "character"; character: string }
  /** `?` */
  | { kind: "any" }
  /** `*` */
  | { kind: "star" }
  /** `**`, together with a `/` that follows it. */
  | { kind: "deep" }
  /** `[a-z]`, as text that micromatch reads the same way. */
  | { kind: "class"; glob: string; matchesSlash: boolean };

/** A pattern that Go's `filepath.Match` calls `ErrBadPattern`; the message says what is wrong in it. */
export class GlobSyntaxError extends Error {}

/** Compiles what `word` means, as shown; where that is not a valid pattern, the error says so of it. */
export function validPattern<Pattern>(word: string, compile: () => Pattern, hint?: string): Pattern {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof GlobSyntaxError)) throw error;
    throw new BoughError(`${word} is not a valid pattern: ${error.message}`, {
      kind: "usage",
      ...(hint && { hint }),
    });
  }
}

/** @throws GlobSyntaxError */
export function tokenizeGlob(pattern: string, options: { doubleStar: boolean }): GlobToken[] {
  const characters = Array.from(pattern);
  const tokens: GlobToken[] = [];
  for (let at = 0; at < characters.length; ) {
    const character = characters[at++] as string;
    if (character === "\\") {
      const escaped = characters[at++];
      if (escaped === undefined) throw new GlobSyntaxError("it ends in a backslash that escapes nothing");
      tokens.push({ kind: "character", character: escaped });
    } else if (character === "?") {
      tokens.push({ kind: "any" });
    } else if (character === "*") {
      if (options.doubleStar && characters[at] === "*") {
        at++;
        if (characters[at] === "/") at++;
        if (tokens.at(-1)?.kind !== "deep") tokens.push({ kind: "deep" });
      } else if (tokens.at(-1)?.kind !== "star") {
        tokens.push({ kind: "star" });
      }
    } else if (character === "[") {
      const { token, next } = readClass(characters, at);
      tokens.push(token);
      at = next;
    } else {
      tokens.push({ kind: "character", character });
    }
  }
  return tokens;
}

/** Returns whether a path has a wildcard that is not escaped. */
export function hasWildcard(path: string): boolean {
  return /^(?:[^\\*?[]|\\.)*[*?[]/s.test(path);
}

/** A path in which no character is a wildcard any more. */
export function escapeGlob(path: string): string {
  return path.replace(/[*?[\\]/g, (character) => (character === "\\" ? "\\\\" : `[${character}]`));
}

export function unescapeGlob(path: string): string {
  return path.replace(/\\(.)/gs, "$1");
}

export type NameMatcher = (name: string) => boolean;

/**
 * A matcher for one name, so without `/` and `deep` in the tokens. Takes time in proportion to the name's
 * length times the pattern's, whatever the pattern: it is cut at its stars, and between two stars nothing can
 * backtrack, so each part is looked for once, from left to right.
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

/** Where the text after the first part begins, or -1. */
function compileStart(tokens: readonly GlobToken[]): (name: string) => number {
  const literal = literalText(tokens);
  if (literal !== undefined) return (name) => (name.startsWith(literal) ? literal.length : -1);
  const start = compilePart(tokens, "^", "");
  return (name) => start.exec(name)?.[0].length ?? -1;
}

/** Where the last part begins, or -1. */
function compileEnd(tokens: readonly GlobToken[]): (name: string) => number {
  const literal = literalText(tokens);
  if (literal !== undefined) return (name) => (name.endsWith(literal) ? name.length - literal.length : -1);
  const end = compilePart(tokens, "", "$");
  return (name) => end.exec(name)?.index ?? -1;
}

function compilePart(tokens: readonly GlobToken[], before: string, after: string, flags = ""): RegExp {
  // Loaded for `?` and classes only: most builds have neither, and it takes longer than their matching does.
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

/** The one text that the tokens match, if it is only one. */
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
  // Two stars with nothing between them are one.
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
    if (bound === "-") throw new GlobSyntaxError("a `-` in a character class needs a `\\` before it");
    if (bound === "]") throw new GlobSyntaxError("it has an empty or incomplete character class");
    if (bound === "\\") bound = characters[at++];
    if (bound === undefined) throw new GlobSyntaxError("it has a character class without its `]`");
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
    if (at >= characters.length) throw new GlobSyntaxError("it has a character class without its `]`");
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
