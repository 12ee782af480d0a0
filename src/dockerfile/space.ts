/**
 * White space as Go's `unicode.IsSpace` defines it, because that decides where BuildKit ends a word. JavaScript's
 * `\s` differs by U+0085 and U+FEFF.
 */
const spaces = "\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const oneSpace = new RegExp(`^[${spaces}]$`);
const leading = new RegExp(`^[${spaces}]+`);

export function isSpace(character: string): boolean {
  const code = character.charCodeAt(0);
  if (code < 0x80) return code === 32 || (code >= 9 && code <= 13);
  return oneSpace.test(character);
}

/** How many characters of white space stand at the front of `text`, counted from `from`. */
export function countLeadingSpace(text: string, from = 0): number {
  let position = from;
  while (position < text.length && isSpace(text.charAt(position))) position++;
  return position - from;
}

export function trimStart(text: string): string {
  return text.replace(leading, "");
}

export function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

export function trim(text: string): string {
  return trimEnd(trimStart(text));
}
