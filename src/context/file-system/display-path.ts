/**
 * A path as it may stand in a message: quoted and escaped where it has characters that a terminal acts on or
 * that nobody can see.
 */
export function displayPath(path: string): string {
  if (!/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^\s|\s$|^$/u.test(path)) return path;
  const escaped = path.replace(/["\\\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    switch (character) {
      case "\n":
        return "\\n";
      case "\t":
        return "\\t";
      case "\r":
        return "\\r";
      case '"':
      case "\\":
        return `\\${character}`;
      default:
        return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    }
  });
  return `"${escaped}"`;
}
