/** Spaces between two columns. */
const gap = 2;
/** Less of a cell says nothing. */
const narrowest = 8;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Widths of a table's columns that together fit `columns`, as far as that can be done: the widest column gives way
 * first, ids last, since a part of an id is of less use. `lines[0]` is the header, which stays whole.
 */
export function fitWidths(
  natural: readonly number[],
  lines: readonly (readonly string[])[],
  columns: number,
): number[] {
  const widths = [...natural];
  const [header = [], ...rows] = lines;
  const minimum = header.map((title) => Math.max(narrowest, Bun.stringWidth(title)));
  const isId = header.map((_, column) => rows.some((cells) => uuid.test(cells[column] ?? "")));
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
      // Down to the next widest, so that columns of about one width shrink together.
      const step = Math.max(1, second === undefined ? first.room : first.width - second.width);
      widths[first.column] = first.width - Math.min(step, first.room, excess);
    }
  }
  return widths;
}

/** The beginning of a text, with an ellipsis where something is missing. */
export function truncateToWidth(text: string, width: number): string {
  return Bun.sliceAnsi(text, 0, Math.max(0, width), "…");
}
