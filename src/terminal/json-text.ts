/**
 * A value as JSON that no terminal acts upon, and that says the same: beside what JSON escapes anyway, the other control
 * characters and those that reorder or hide what follows. `replace`: as of JSON.stringify.
 */
export function jsonText(
  value: unknown,
  options: { indent?: number; replace?: (key: string, value: unknown) => unknown } = {},
): string {
  return JSON.stringify(value, options.replace, options.indent).replace(unseen, escapeUnits);
}

/** Line feeds are those of the indentation: JSON has escaped all others. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** JSON knows code units only: what is beyond the first plane is two of them. */
function escapeUnits(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("");
}
