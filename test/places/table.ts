import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The table of `test/README.md`: promises down, places across. */
interface PlacesTable {
  places: string[];
  /** By promise and place: whether it is tested there, or the number of the note that says why not. */
  rows: Record<string, Record<string, "kept" | string>>;
  /** Cells whose note is missing. */
  unexplained: string[];
}

/** Reads the only table of the file whose first heading is `Promise`. */
export function readPlacesTable(): PlacesTable {
  const text = readFileSync(join(import.meta.dir, "../README.md"), "utf8");
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^\| *Promise *\|/.test(line));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  const [heading, , ...body] = lines.slice(start, end).map(readCells);
  const [, ...places] = heading ?? [];
  const notes = new Set(Array.from(text.matchAll(/^([a-z])\. /gm), ([, note]) => note));
  const rows = Object.fromEntries(
    body.map(([promise = "", ...cells]) => [
      promise,
      Object.fromEntries(
        places.map((place, index) => [place, cells[index] === "✓" ? "kept" : (cells[index] ?? "")]),
      ),
    ]),
  );
  const unexplained = Object.entries(rows).flatMap(([promise, cells]) =>
    Object.entries(cells).flatMap(([place, cell]) =>
      cell === "kept" || notes.has(cell) ? [] : [`${promise}, ${place}: ${cell}`],
    ),
  );
  return { places, rows, unexplained };
}

function readCells(line: string): string[] {
  return line
    .slice(1, line.lastIndexOf("|"))
    .split("|")
    .map((cell) => cell.trim());
}
