/** Returns lines in columns that tabs separate, as Go's tabwriter writes them for buildx: each column as wide as tabs make it. */
export function tabbed(rows: readonly (readonly string[])[]): string {
  // A line break in a cell begins a line of its own.
  const lines = rows.flatMap((row) =>
    row
      .join("\t")
      .split("\n")
      .map((line) => line.split("\t")),
  );
  const widths = lines.map((): number[] => []);
  setWidths(lines, widths, { from: 0, to: lines.length, column: 0 });
  return lines
    .map((cells, line) => {
      const padded = cells.slice(0, -1).map((cell, column) => {
        const width = widths[line]?.[column] ?? 0;
        return cell + "\t".repeat(Math.ceil((width - lengthOf(cell)) / tabSize));
      });
      return `${padded.join("")}${cells.at(-1) ?? ""}\n`;
    })
    .join("");
}

const tabSize = 8;

/** A column ends where a line has no cell in it that another one follows. */
function setWidths(
  lines: readonly (readonly string[])[],
  widths: readonly number[][],
  { from, to, column }: { from: number; to: number; column: number },
): void {
  for (let start = from; start < to; start++) {
    let end = start;
    while (end < to && (lines[end]?.length ?? 0) > column + 1) end += 1;
    if (end === start) continue;
    const longest = Math.max(...lines.slice(start, end).map((cells) => lengthOf(cells[column] ?? "")));
    const width = Math.ceil((longest + 1) / tabSize) * tabSize;
    for (const line of widths.slice(start, end)) line[column] = width;
    setWidths(lines, widths, { from: start, to: end, column: column + 1 });
    start = end - 1;
  }
}

function lengthOf(text: string): number {
  return [...text].length;
}
