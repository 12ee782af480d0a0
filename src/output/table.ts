/** Columns padded to their widest cell, two spaces apart; nothing is ever cut off, so that lines can be cut by tools. */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows].map((cells) => cells.map(printable));
  const widths = header.map((_, column) =>
    Math.max(...lines.map((cells) => Bun.stringWidth(cells[column] ?? ""))),
  );
  return lines
    .map(
      (cells) =>
        `${cells
          .map((cell, column) => pad(cell, widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

function pad(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - Bun.stringWidth(cell)));
}

/** A cell is one line, and steers no terminal. */
function printable(cell: string): string {
  return cell.replace(/[\x00-\x1f\x7f-\x9f]+/g, " ");
}
