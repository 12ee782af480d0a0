import { type Lookup, lex } from "../text/lexer.ts";

export type { Lookup } from "../text/lexer.ts";

/**
 * Words everywhere but in a shell-form RUN (Dockerfile reference, "Environment replacement"): quotes and escapes are
 * removed, `$NAME`, `${NAME}` and the operators `:- - :+ + :? ? # ## % %% / //` are replaced, names without a value
 * are empty. All throw a BoughError of kind `usage` for what BuildKit refuses.
 */

/** One word; white space in it or in a value stays. `escapeCharacter` is the Dockerfile's escape character. */
export function expandWord(word: string, lookup: Lookup, escapeCharacter: string): string {
  if (!isSpecial(word, escapeCharacter)) return word;
  return lex(word, lookup, { escape: escapeCharacter }).text;
}

/**
 * The body of a COPY or ADD here-document whose delimiter is not quoted: variables are replaced and escapes removed,
 * quotes are characters like any other.
 */
export function expandHeredoc(content: string, lookup: Lookup, escapeCharacter: string): string {
  return lex(content, lookup, { escape: escapeCharacter, ignoresQuotes: true }).text;
}

function isSpecial(word: string, escapeCharacter: string): boolean {
  return word.includes("$") || word.includes("'") || word.includes('"') || word.includes(escapeCharacter);
}
