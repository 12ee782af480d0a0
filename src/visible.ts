/**
 * Matches characters that are unsafe on a terminal in text from files, names, services, images and variables: escape sequences,
 * other control characters, and those that reorder, hide or break text. They are shown by their code. Joiners stay inside an
 * emoji. It is compiled only when needed: Unicode classes are large, and most text is plain.
 */
const unprintable = () =>
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}](?<!\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f)?\u200d(?=\p{Extended_Pictographic}))/gu;
const isPlain = /^[\x20-\x7e]*$/;

const maxQuotationLength = 200;

/** Returns `text` on one line, safe for a terminal. */
export function visible(text: string): string {
  const shown = isPlain.test(text) ? text : text.replace(unprintable(), escapeOf);
  // GitHub's runner takes it for a command, wherever it stands in a line.
  return shown.replaceAll("##[", "##\\x5b");
}

/**
 * Makes several lines of bough's own text safe. Indents a line that looks like a log line, which only a line break in foreign
 * text can cause.
 */
export function visibleLines(text: string): string {
  if (!text.includes("\n")) return visible(text);
  return text
    .split("\n")
    .map((line, index) => (index > 0 && logLine.test(line) ? `  | ${visible(line)}` : visible(line)))
    .join("\n");
}

const logLine = /^\s*(?:\[(?:DEBUG|INFO|WARN|ERROR)\]|::)/;

/** Returns `text` in double quotes for a message, cut if it is long. */
export function quoted(text: string): string {
  return `"${visible(truncate(text, maxQuotationLength))}"`;
}

/** Returns at most `length` characters of `text`, and dots for the rest. */
export function truncate(text: string, length: number): string {
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
      const code = (character.codePointAt(0) ?? 0).toString(16);
      if (code.length > 4) return `\\u{${code}}`;
      return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
    }
  }
}
