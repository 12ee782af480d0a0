import { visible } from "../visible.ts";
import { paintHeading } from "./color.ts";
import { fitWidths, truncateToWidth } from "./fit.ts";

/** How a table is shown where it is read by a person; nothing of it applies to a pipe or a file. */
export interface TableStyle {
  /** Columns of the terminal: longer cells are cut off with an ellipsis. */
  columns?: number;
  hasColor?: boolean;
}

/** Columns padded to their widest cell, two spaces apart. Without a style nothing is ever cut off: tools read that. */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  style: TableStyle = {},
): string {
  const lines = [header, ...rows].map((cells) => cells.map(printable));
  const natural = header.map((_, column) =>
    Math.max(...lines.map((cells) => Bun.stringWidth(cells[column] ?? ""))),
  );
  const widths = style.columns === undefined ? natural : fitWidths(natural, lines, style.columns);
  return lines
    .map((cells, index) => {
      const line = cells
        .map((cell, column) => pad(truncateToWidth(cell, widths[column] ?? 0), widths[column] ?? 0))
        .join("  ")
        .trimEnd();
      return `${index === 0 && style.hasColor === true ? paintHeading(line) : line}\n`;
    })
    .join("");
}

function pad(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - Bun.stringWidth(cell)));
}

/** A cell is one line, and steers no terminal. */
function printable(cell: string): string {
  return visible(cell.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, " "));
}
