/**
 * Patterns of `${V#p}`, `${V%p}` and `${V/p/r}`: `*` is any text, `?` is any one character, a backslash makes either
 * one plain. Brackets are plain text, as in BuildKit. Every search is a row of searches for the plain pieces between
 * the stars, each of which takes the first or the last place it finds, so nothing is ever tried again.
 */

/** A pattern's pieces between its stars; a number stands for "any one character", a string for itself. */
interface Pattern {
  pieces: readonly (readonly Token[])[];
}

type Token = string | typeof anyCharacter;

const anyCharacter = 0;

/** A longer pattern is refused: it would only slow the search down. */
const maximumTokens = 1024;

/** Reads a pattern, or says what is wrong with it. */
export function parsePattern(text: string): Pattern | { error: string } {
  const pieces: Token[][] = [[]];
  const characters = Array.from(text);
  if (characters.length > maximumTokens) return { error: `longer than ${maximumTokens} characters` };
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? "";
    const piece = pieces.at(-1) ?? [];
    if (character === "*") {
      pieces.push([]);
    } else if (character === "?") {
      piece.push(anyCharacter);
    } else if (character === "\\") {
      const escaped = characters[++index];
      // `\}` and `\/` are needed to get past the end of the substitution; elsewhere only what is special has an escape.
      if (escaped === undefined || !"}/*?\\".includes(escaped))
        return { error: `invalid escape '\\${escaped ?? ""}'` };
      piece.push(escaped);
    } else {
      piece.push(character);
    }
  }
  return { pieces };
}

/** `value` without the shortest or the longest prefix that matches. */
export function trimPrefix(value: string, pattern: Pattern, longest: boolean): string {
  const characters = Array.from(value);
  const end = matchFrom(characters, 0, pattern.pieces, longest);
  return end === undefined ? value : characters.slice(end).join("");
}

/** `value` without the shortest or the longest suffix that matches: a prefix, read backwards. */
export function trimSuffix(value: string, pattern: Pattern, longest: boolean): string {
  const characters = Array.from(value).reverse();
  const pieces = pattern.pieces.map((piece) => piece.toReversed()).toReversed();
  const end = matchFrom(characters, 0, pieces, longest);
  return end === undefined ? value : characters.slice(end).reverse().join("");
}

/**
 * `value` with the first match, or every one, replaced; each match starts as early and reaches as far as it can.
 * Undefined where the result would be longer than `limit` characters.
 */
export function replaceMatches(
  value: string,
  pattern: Pattern,
  replacement: string,
  options: { all: boolean; limit: number },
): string | undefined {
  const characters = Array.from(value);
  const parts: string[] = [];
  let length = 0;
  let copied = 0;
  let from = 0;
  while (from <= characters.length) {
    const match = findMatch(characters, from, pattern.pieces);
    if (match === undefined) break;
    // An empty match right behind the last one is not a match of its own (Go's rule).
    if (match.end > copied || match.start === 0 || match.start > copied) {
      const kept = characters.slice(copied, match.start).join("");
      length += kept.length + replacement.length;
      if (length > options.limit) return undefined;
      parts.push(kept, replacement);
      copied = match.end;
      if (!options.all) break;
    }
    from = match.end > match.start ? match.end : match.end + 1;
  }
  return parts.join("") + characters.slice(copied).join("");
}

function findMatch(characters: readonly string[], from: number, pieces: Pattern["pieces"]) {
  // What follows the first piece has the most room behind its first place, so no later start can do better.
  const start = findPiece(characters, from, pieces[0] ?? []);
  if (start === undefined) return undefined;
  const end = matchFrom(characters, start, pieces, true);
  return end === undefined ? undefined : { start, end };
}

/** Where a match that starts at `start` ends. */
function matchFrom(
  characters: readonly string[],
  start: number,
  pieces: Pattern["pieces"],
  longest: boolean,
) {
  const first = pieces[0] ?? [];
  if (!matchesAt(characters, start, first)) return undefined;
  let end = start + first.length;
  for (const [index, piece] of pieces.entries()) {
    if (index === 0) continue;
    const isLast = index === pieces.length - 1;
    const found =
      isLast && longest ? findLastPiece(characters, end, piece) : findPiece(characters, end, piece);
    if (found === undefined) return undefined;
    end = found + piece.length;
  }
  return end;
}

function findPiece(characters: readonly string[], from: number, piece: readonly Token[]): number | undefined {
  for (let at = from; at + piece.length <= characters.length; at++)
    if (matchesAt(characters, at, piece)) return at;
  return undefined;
}

function findLastPiece(
  characters: readonly string[],
  from: number,
  piece: readonly Token[],
): number | undefined {
  for (let at = characters.length - piece.length; at >= from; at--)
    if (matchesAt(characters, at, piece)) return at;
  return undefined;
}

function matchesAt(characters: readonly string[], at: number, piece: readonly Token[]): boolean {
  if (at + piece.length > characters.length) return false;
  for (let index = 0; index < piece.length; index++) {
    const token = piece[index];
    if (token !== anyCharacter && token !== characters[at + index]) return false;
  }
  return true;
}
