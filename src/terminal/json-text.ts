/**
 * Returns a value as JSON that is safe to show on a terminal: it also escapes the control characters that JSON allows, and those
 * that reorder or hide text. `replace`: as in JSON.stringify.
 */
export function jsonText(
  value: unknown,
  options: { indent?: number; replace?: (key: string, value: unknown) => unknown } = {},
): string {
  return (
    JSON.stringify(value, options.replace, options.indent)
      .replace(unseen, escapeUnits)
      // GitHub's runner takes it for a command, wherever it stands in a line.
      .replaceAll("##[", "##\\u005b")
  );
}

/** Excludes line feeds, which come only from indentation: JSON escapes all others. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes a character by its UTF-16 code units, of which a character beyond the first plane has two. */
function escapeUnits(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("");
}
