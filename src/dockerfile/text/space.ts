/**
 * White space by Go's `unicode.IsSpace`, at which BuildKit ends a word. JavaScript's `\s` differs by U+0085 and U+FEFF. For use
 * inside the brackets of a regular expression.
 */
export const spaceCharacters =
  "\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
/** The part of white space at which BuildKit ends most words. */
export const blankCharacters = "\\t\\v\\f\\r ";

/** Matches any white space. */
export const anySpace = new RegExp(`[${spaceCharacters}]`);
const leading = new RegExp(`^[${spaceCharacters}]+`);

export function isSpace(character: string): boolean {
  return isSpaceAt(character, 0);
}

export function isSpaceAt(text: string, position: number): boolean {
  const code = text.charCodeAt(position);
  if (code < 0x80) return code === 32 || (code >= 9 && code <= 13);
  return anySpace.test(text.charAt(position));
}

export function trimStart(text: string): string {
  let start = 0;
  let code = text.charCodeAt(0);
  while (code === 32 || code === 9) code = text.charCodeAt(++start);
  if (code > 32 && code < 0x80) return start === 0 ? text : text.slice(start);
  return text.replace(leading, "");
}

export function trimEnd(text: string): string {
  let end = text.length;
  const code = text.charCodeAt(end - 1);
  if (code > 32 && code < 0x80) return text;
  while (end > 0 && isSpaceAt(text, end - 1)) end--;
  return text.slice(0, end);
}
