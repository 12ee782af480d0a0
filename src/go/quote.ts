/** Quotes a text as Go's `%q` does. https://pkg.go.dev/strconv#Quote */
export function goQuote(text: string): string {
  return `"${escapeUnprintable(text).replaceAll('"', '\\"')}"`;
}

/** Quotes a number as Go's `%q` does: as the character with that code. */
export function goQuoteCharacter(code: number): string {
  const isCharacter = code >= 0 && code <= 0x10ffff;
  return `'${escapeUnprintable(isCharacter ? String.fromCodePoint(code) : "\uFFFD").replaceAll("'", "\\'")}'`;
}

const escapes: Readonly<Record<string, string>> = {
  ...{ "\x07": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n" },
  ...{ "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\" },
};

/** Escapes backslashes and the characters that Go does not print: all but letters, marks, numbers, punctuation, symbols and the space. */
function escapeUnprintable(text: string): string {
  return text.replace(/\\|\p{C}|(?! )\p{Z}/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    const escaped = escapes[character];
    if (escaped !== undefined) return escaped;
    if (code < 0x80) return `\\x${hex.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
  });
}
