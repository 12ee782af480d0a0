import { isSpace } from "./space.ts";

/** A stretch of a logical line, with where it starts in it. */
export interface Word {
  text: string;
  offset: number;
}

/** Splits at blanks and at nothing else: what FROM, COPY, ADD, EXPOSE and VOLUME do. Quotes have no meaning here. */
export function splitAtBlanks(text: string, offset: number): Word[] {
  const words: Word[] = [];
  let start = 0;
  for (let position = 0; position < text.length; ) {
    if (!isBlank(text.charCodeAt(position++))) continue;
    words.push({ text: text.slice(start, position - 1), offset: offset + start });
    while (isBlank(text.charCodeAt(position))) position++;
    start = position;
  }
  if (text !== "") words.push({ text: text.slice(start), offset: offset + start });
  return words;
}

/** Narrower than white space: BuildKit's `[\t\v\f\r ]`. */
export function isBlank(code: number): boolean {
  return code === 32 || code === 9 || (code >= 11 && code <= 13);
}

/** Splits at white space outside of quotes, which stay: what ENV, LABEL and ARG do. */
export function splitWords(text: string, offset: number, escapeCharacter: string): Word[] {
  const words: Word[] = [];
  let start = -1;
  let quote = "";
  for (let position = 0; position < text.length; position++) {
    if (isPlain(text.charCodeAt(position))) {
      if (start < 0) start = position;
      continue;
    }
    const character = text.charAt(position);
    if (quote === "" && isSpace(character)) {
      if (start >= 0) words.push({ text: text.slice(start, position), offset: offset + start });
      start = -1;
      continue;
    }
    if (start < 0) start = position;
    // Nothing can be escaped between single quotes.
    if (character === escapeCharacter && quote !== "'") position++;
    else if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === "'" || character === '"') quote = character;
  }
  if (start >= 0)
    words.push({ text: withoutLoneEscape(text.slice(start), escapeCharacter), offset: offset + start });
  return words.filter((word) => word.text !== "");
}

/** Characters that have no meaning, in quotes or out of them: printable ASCII but for quotes and escapes. */
function isPlain(code: number): boolean {
  return code > 32 && code < 127 && code !== 34 && code !== 39 && code !== 92 && code !== 96;
}

/** BuildKit drops an escape character that stands at the very end and so escapes nothing. */
function withoutLoneEscape(word: string, escapeCharacter: string): string {
  if (!word.endsWith(escapeCharacter)) return word;
  let count = 0;
  while (word.charAt(word.length - 1 - count) === escapeCharacter) count++;
  return count % 2 === 1 ? word.slice(0, -1) : word;
}
