import { type Lookup, lex } from "../text/lexer.ts";

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
