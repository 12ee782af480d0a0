import { isSpace } from "./space.ts";

/** A stretch of a logical line, with where it starts in it. */
export interface Word {
  text: string;
  offset: number;
}

/** Text in which no character has a meaning, in quotes or out of them; taken in one go. */
const plainText = /[!#-&(-[\]^_a-z{-~]+/y;
const blanks = /[\t\v\f\r ]+/g;

/** Splits at blanks and at nothing else: what FROM, COPY, ADD, EXPOSE and VOLUME do. Quotes have no meaning here. */
export function splitAtBlanks(text: string, offset: number): Word[] {
  const words: Word[] = [];
  let start = 0;
  for (const match of text.matchAll(blanks)) {
    words.push({ text: text.slice(start, match.index), offset: offset + start });
    start = match.index + match[0].length;
  }
  if (text !== "") words.push({ text: text.slice(start), offset: offset + start });
  return words;
}

/** Splits at white space outside of quotes, which stay: what ENV, LABEL and ARG do. */
export function splitWords(text: string, offset: number, escapeCharacter: string): Word[] {
  const words: Word[] = [];
  let start = -1;
  let quote = "";
  for (let position = 0; position < text.length; position++) {
    plainText.lastIndex = position;
    if (plainText.test(text)) {
      if (start < 0) start = position;
      position = plainText.lastIndex - 1;
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

/** BuildKit drops an escape character that stands at the very end and so escapes nothing. */
function withoutLoneEscape(word: string, escapeCharacter: string): string {
  if (!word.endsWith(escapeCharacter)) return word;
  let count = 0;
  while (word.charAt(word.length - 1 - count) === escapeCharacter) count++;
  return count % 2 === 1 ? word.slice(0, -1) : word;
}
