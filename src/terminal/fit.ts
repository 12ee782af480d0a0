/** The number of spaces between two columns. */
const gap = 2;
/** The minimum width of a cell: fewer characters are useless. */
const minColumns = 8;

/**
 * Returns widths for a table's columns that together fit `columns`, as far as possible. The widest column shrinks first, and IDs
 * last, since a part of an ID is less useful. The header and columns to copy stay whole.
 */
export function fitWidths(
  natural: readonly number[],
  {
    header,
    isId,
    isWhole = [],
  }: { header: readonly string[]; isId: readonly boolean[]; isWhole?: readonly boolean[] },
  columns: number,
): number[] {
  const widths = [...natural];
  const minimum = header.map((title, column) =>
    isWhole[column] === true ? (natural[column] ?? 0) : Math.max(minColumns, Bun.stringWidth(title)),
  );
  for (const givesWay of [(column: number) => isId[column] !== true, () => true]) {
    for (;;) {
      const excess = widths.reduce((sum, width) => sum + width + gap, -gap) - columns;
      if (excess <= 0) return widths;
      const widest = widths
        .map((width, column) => ({ width, column, room: width - (minimum[column] ?? 0) }))
        .filter(({ column, room }) => room > 0 && givesWay(column))
        .sort((a, b) => b.width - a.width);
      const [first, second] = widest;
      if (first === undefined) break;
      // It shrinks to the next widest, so that columns of similar width shrink together.
      const step = Math.max(1, second === undefined ? first.room : first.width - second.width);
      widths[first.column] = first.width - Math.min(step, first.room, excess);
    }
  }
  return widths;
}

/** Cuts a text to `width`, with an ellipsis for the rest. */
export function truncateToWidth(text: string, width: number): string {
  return Bun.sliceAnsi(text, 0, Math.max(0, width), "…");
}

/** Wraps `words` after `beginning` at `columns`. Further lines begin with `indent` spaces. No word is broken. */
export function wrapWords(
  beginning: string,
  words: readonly string[],
  { indent, columns }: { indent: number; columns: number },
): string {
  const lines: string[] = [];
  let line = beginning;
  let width = columns === Number.POSITIVE_INFINITY ? 0 : Bun.stringWidth(beginning);
  let isFresh = true;
  for (const word of words) {
    // A pipe needs no widths. Only the added word is measured, since measuring the whole line would take longer with each word.
    const wordWidth = columns === Number.POSITIVE_INFINITY ? 0 : Bun.stringWidth(word);
    if (isFresh || width + 1 + wordWidth <= columns) {
      line += isFresh ? word : ` ${word}`;
      width += isFresh ? wordWidth : wordWidth + 1;
    } else {
      lines.push(line);
      line = " ".repeat(indent) + word;
      width = indent + wordWidth;
    }
    isFresh = false;
  }
  lines.push(line);
  return lines.map((line) => line.trimEnd()).join("\n");
}
