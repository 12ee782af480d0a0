import { type Lookup, lex } from "../text/lexer.ts";
import { anySpace, blankCharacters, isSpaceAt, spaceCharacters } from "../text/space.ts";

export type { Lookup } from "../text/lexer.ts";

/**
 * Expands words everywhere but in a shell-form RUN (Dockerfile reference, "Environment replacement"): removes quotes and
 * escapes, and replaces `$NAME`, `${NAME}` and the operators `:- - :+ + :? ? # ## % %% / //`. Names without a value become
 * empty. All functions throw a BoughError of kind `usage` for text that BuildKit refuses.
 */

/** Expands one word. White space in it or in a value stays. `escapeCharacter` is the Dockerfile's escape character. */
export function expandWord(word: string, lookup: Lookup, escapeCharacter: string): string {
  if (!isSpecial(word, escapeCharacter)) return word;
  return lex(word, lookup, { escape: escapeCharacter }).text;
}

/**
 * Expands the body of a COPY or ADD here-document with an unquoted delimiter: replaces variables and removes escapes. Quotes are
 * plain characters.
 */
export function expandHeredoc(content: string, lookup: Lookup, escapeCharacter: string): string {
  return lex(content, lookup, { escape: escapeCharacter, ignoresQuotes: true }).text;
}

function isSpecial(word: string, escapeCharacter: string): boolean {
  return word.includes("$") || word.includes("'") || word.includes('"') || word.includes(escapeCharacter);
}

/** A part of a logical line, with its offset there. */
export interface Word {
  text: string;
  offset: number;
}

const blanks = new RegExp(`[${blankCharacters}]+`);
const spaces = new RegExp(`${anySpace.source}+`, "y");
/** Text without white space, quotes and escape characters. */
const plainText = new RegExp(`[^${spaceCharacters}'"\\\\\`]+`, "y");
const quotedText = /[^"\\`]+/y;

/** Splits only at blanks, as FROM, COPY, ADD, EXPOSE and VOLUME do. Quotes have no meaning here. */
export function splitAtBlanks(text: string, offset: number): Word[] {
  const words: Word[] = [];
  if (text === "") return words;
  let end = 0;
  for (const word of text.split(blanks)) {
    const start = text.indexOf(word, end);
    end = start + word.length;
    words.push({ text: word, offset: offset + start });
  }
  return words;
}

/** Splits at white space outside quotes, as ENV, LABEL and ARG do. Quotes are kept. */
export function splitWords(text: string, offset: number, escapeCharacter: string): Word[] {
  const words: Word[] = [];
  for (let end = 0; ; ) {
    const start = skip(spaces, text, end);
    if (start === text.length) return words;
    end = skip(plainText, text, start);
    if (end < text.length && !isSpaceAt(text, end)) end = findWordEnd(text, end, escapeCharacter);
    const word = text.slice(start, end);
    const kept = end < text.length ? word : withoutLoneEscape(word, escapeCharacter);
    if (kept !== "") words.push({ text: kept, offset: offset + start });
  }
}

/** Like `splitWords`, but returns only the texts. */
export function splitTexts(text: string, escapeCharacter: string): string[] {
  // Most lines have no quotes; these are long and many, and a regular expression splits them faster.
  if (text !== "" && !/['"\\`\u0080-\uffff]/.test(text)) return text.split(/\s+/);
  return splitWords(text, 0, escapeCharacter).map((word) => word.text);
}

function findWordEnd(text: string, start: number, escapeCharacter: string): number {
  let position = start;
  for (;;) {
    position = skip(plainText, text, position);
    const character = text.charAt(position);
    if (character === escapeCharacter) position += 2;
    else if (character === "'" || character === '"')
      position = findQuoteEnd(text, position + 1, character, escapeCharacter);
    else if (character === "\\" || character === "`") position++;
    else return position;
    if (position >= text.length) return text.length;
  }
}

/** Returns the end of a quoted text. Single quotes have no escapes. */
function findQuoteEnd(text: string, start: number, quote: string, escapeCharacter: string): number {
  if (quote === "'") return text.indexOf(quote, start) + 1 || text.length;
  for (let position = start; ; ) {
    position = skip(quotedText, text, position);
    const character = text.charAt(position);
    if (character === quote) return position + 1;
    if (character === "") return text.length;
    position += character === escapeCharacter ? 2 : 1;
  }
}

/** Returns the end of a sticky expression's match at `position`. */
function skip(expression: RegExp, text: string, position: number): number {
  expression.lastIndex = position;
  return expression.test(text) ? expression.lastIndex : position;
}

/** Drops an unescaped escape character at the very end, as BuildKit does. */
function withoutLoneEscape(word: string, escapeCharacter: string): string {
  if (!word.endsWith(escapeCharacter)) return word;
  let count = 0;
  while (word.charAt(word.length - 1 - count) === escapeCharacter) count++;
  return count % 2 === 1 ? word.slice(0, -1) : word;
}
