/**
 * Patterns of `${V#p}`, `${V%p}` and `${V/p/r}`: `*` is any text, `?` is any one character, and a backslash escapes either.
 * Brackets are plain text, as in BuildKit. A search looks for the plain pieces between the stars one after the other and takes
 * the first or the last place of each, so it never backtracks.
 */

/** A pattern's pieces between its stars. A number is "any one character", a string is itself. */
interface Pattern {
  pieces: readonly (readonly Token[])[];
}

type Token = string | typeof anyCharacter;

const anyCharacter = 0;

/** The maximum length of a pattern: a longer one would only slow the search down. */
const maxTokens = 1024;

/** Parses a pattern. Returns the reason if it is invalid. */
export function parsePattern(text: string): Pattern | { error: string } {
  const pieces: Token[][] = [[]];
  const characters = Array.from(text);
  if (characters.length > maxTokens) return { error: `longer than ${maxTokens} characters` };
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? "";
    const piece = pieces.at(-1) ?? [];
    if (character === "*") {
      pieces.push([]);
    } else if (character === "?") {
      piece.push(anyCharacter);
    } else if (character === "\\") {
      const escaped = characters[++index];
      // `\}` and `\/` keep the substitution from ending; other escapes exist only for special characters.
      if (escaped === undefined || !"}/*?\\".includes(escaped))
        return { error: `invalid escape '\\${escaped ?? ""}'` };
      piece.push(escaped);
    } else {
      piece.push(character);
    }
  }
  return { pieces };
}

/** Returns `value` without the shortest or the longest prefix that matches. */
export function trimPrefix(value: string, pattern: Pattern, longest: boolean): string {
  const characters = Array.from(value);
  const end = matchFrom(characters, 0, pattern.pieces, longest);
  return end === undefined ? value : characters.slice(end).join("");
}

/** Returns `value` without the shortest or the longest suffix that matches: a prefix of the reversed text. */
export function trimSuffix(value: string, pattern: Pattern, longest: boolean): string {
  const characters = Array.from(value).reverse();
  const pieces = pattern.pieces.map((piece) => piece.toReversed()).toReversed();
  const end = matchFrom(characters, 0, pieces, longest);
  return end === undefined ? value : characters.slice(end).reverse().join("");
}

/**
 * Replaces the first match, or every match; each starts as early and is as long as possible. Returns `undefined` if the result
 * would be longer than `limit` characters.
 */
export function replaceMatches(
  value: string,
  pattern: Pattern,
  replacement: string,
  options: { all: boolean; limit: number },
): string | undefined {
  const text = plainText(pattern);
  if (text !== "" && options.all) {
    const between = value.split(text);
    const length = value.length + (between.length - 1) * (replacement.length - text.length);
    return length > options.limit ? undefined : between.join(replacement);
  }
  const characters = Array.from(value);
  const parts: string[] = [];
  let length = 0;
  let copied = 0;
  let from = 0;
  while (from <= characters.length) {
    const match = findMatch(characters, from, pattern.pieces);
    if (match === undefined) break;
    // An empty match right after the last match does not count (Go's rule).
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

/** Returns the text of a pattern without wildcards, for which a value of megabytes is searched much faster; "" for any other pattern. */
function plainText({ pieces: [first = [], ...others] }: Pattern): string {
  return others.length === 0 && !first.includes(anyCharacter) ? first.join("") : "";
}

function findMatch(characters: readonly string[], from: number, pieces: Pattern["pieces"]) {
  // The other pieces have the most room after the first place of the first piece, so a later start can't match better.
  const start = findPiece(characters, from, pieces[0] ?? []);
  if (start === undefined) return undefined;
  const end = matchFrom(characters, start, pieces, true);
  return end === undefined ? undefined : { start, end };
}

/** Returns the end of a match that starts at `start`; `undefined` if there is none. */
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
