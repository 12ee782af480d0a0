/**
 * A value as JSON that no terminal acts upon, and that says the same: beside what JSON escapes anyway, the other control
 * characters and those that reorder or hide what follows. `replace`: as of JSON.stringify.
 */
export function jsonText(
  value: unknown,
  options: { indent?: number; replace?: (key: string, value: unknown) => unknown } = {},
): string {
  return JSON.stringify(value, options.replace, options.indent).replace(
    unseen,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const unseen = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
