/**
 * Text of a stranger's file, made fit for a terminal: escape sequences, other control characters and those that
 * reorder or hide what follows are shown by their code.
 */
const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu;

const longestQuotation = 200;

/** `text` on one line with nothing in it that a terminal would act upon. */
export function visible(text: string): string {
  return text.replace(unprintable, escapeOf);
}

/** `text` in double quotes for a message, cut where it is long. */
export function quoted(text: string): string {
  return `"${visible(shorten(text, longestQuotation))}"`;
}

/** At most `length` characters of `text`, and dots for the rest. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

function escapeOf(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\r":
      return "\\r";
    case "\t":
      return "\\t";
    default: {
      const code = character.charCodeAt(0);
      return code < 0x100
        ? `\\x${code.toString(16).padStart(2, "0")}`
        : `\\u${code.toString(16).padStart(4, "0")}`;
    }
  }
}
