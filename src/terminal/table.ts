import { visible } from "../visible.ts";
import { paintHeading } from "./color.ts";
import { fitWidths, truncateToWidth } from "./fit.ts";
import { jsonText } from "./json-text.ts";
import { formatAge, formatBytes, formatDuration } from "./quantity.ts";
import { createIdShortener } from "./short-id.ts";

/** The style of a table. */
export interface TableStyle {
  /** The terminal's columns: longer cells are cut off with an ellipsis. `undefined` for a pipe or a file. */
  columns?: number;
  hasColor?: boolean;
  /** Milliseconds since the epoch. Without it, IDs are not shortened and times are not shown as ages. */
  now?: number;
}

/**
 * A text, nothing, a text to copy, which is never cut off, an ID that is shortened, a time (ISO 8601, or milliseconds since the
 * epoch) that is shown as an age, or a value that people see in another form.
 */
export type Cell =
  | string
  | null
  | { whole: string }
  | { id: string }
  | { time: string | number }
  | { shown: string; value: string | number | null };

/** A result of columns and rows. */
export interface Table {
  header: readonly string[];
  rows: readonly (readonly Cell[])[];
}

/** Leaves out columns that are empty in all rows, but not those that are `always` shown. */
export function withoutEmptyColumns({ header, rows }: Table, always: readonly string[]): Table {
  const isShown = header.map(
    (title, at) => always.includes(title) || rows.some((cells) => cells[at] !== null),
  );
  const shownOf = <Item>(items: readonly Item[]) => items.filter((_, at) => isShown[at]);
  return { header: shownOf(header), rows: rows.map(shownOf) };
}

/** Returns the cell of a number of bytes, which programs get as it is. */
export function sizeCell(bytes: number | null | undefined): Cell {
  return bytes === null || bytes === undefined ? null : { shown: formatBytes(bytes), value: bytes };
}

/** Returns the cell of a number of seconds, which programs get as it is. */
export function durationCell(seconds: number | null): Cell {
  return seconds === null ? null : { shown: formatDuration(seconds), value: seconds };
}

/**
 * Renders a table, its columns padded to their widest cell, two spaces apart. Without a style nothing is cut off, for tools. A row
 * whose whole cells do not fit the terminal becomes a line for each cell, if it is the only one; else the terminal wraps it.
 */
export function renderTable({ header, rows }: Table, style: TableStyle = {}): string {
  const lines = [header, ...formatCells(rows, style)].map((cells) => cells.map(printable));
  const natural = header.map((_, column) =>
    lines.reduce((widest, cells) => Math.max(widest, Bun.stringWidth(cells[column] ?? "")), 0),
  );
  const has = (key: string) => header.map((_, column) => rows.some((cells) => hasKey(cells[column], key)));
  const [isId, isWhole] = [has("id"), has("whole")];
  const widths =
    style.columns === undefined ? natural : fitWidths(natural, { header, isId, isWhole }, style.columns);
  const paint = style.hasColor === true ? paintHeading : (text: string) => text;
  const toCopy = endOf(widths, isWhole.lastIndexOf(true));
  const limit = style.columns === undefined ? undefined : Math.max(style.columns, toCopy);
  if (limit !== style.columns && lines.length === 2) return renderPairs(lines, paint);
  return lines
    .map((cells, index) => {
      const row = cells
        .map((cell, column) => pad(truncateToWidth(cell, widths[column] ?? 0), widths[column] ?? 0))
        .join("  ")
        .trimEnd();
      // If even the narrowest columns do not fit, the last ones are cut off.
      const line = limit === undefined ? row : truncateToWidth(row, limit);
      return `${index === 0 ? paint(line) : line}\n`;
    })
    .join("");
}

/** Returns the number of columns from the beginning of a row to the end of a cell. */
function endOf(widths: readonly number[], column: number): number {
  return widths.slice(0, column + 1).reduce((end, width) => end + width + 2, -2);
}

function renderPairs([header = [], row = []]: readonly string[][], paint: (text: string) => string): string {
  const width = Math.max(...header.map((title) => Bun.stringWidth(title)));
  return header.map((title, column) => `${paint(pad(title, width))}  ${row[column] ?? ""}\n`).join("");
}

function formatCells(rows: readonly (readonly Cell[])[], { now }: TableStyle): string[][] {
  const ids = rows.flatMap((cells) => cells.flatMap((cell) => idIn(cell) ?? []));
  const shorten = now === undefined ? (id: string) => id : createIdShortener(ids);
  return rows.map((cells) =>
    cells.map((cell) => {
      if (cell === null) return "-";
      if (typeof cell === "string") return cell;
      if ("whole" in cell) return cell.whole;
      if ("shown" in cell) return cell.shown;
      return "id" in cell ? shorten(cell.id) : formatTime(cell.time, now);
    }),
  );
}

/** Formats an age, or without `now` a time. A time that cannot be parsed stays as it is. */
export function formatTime(time: string | number, now: number | undefined): string {
  const moment = new Date(time).getTime();
  if (Number.isNaN(moment)) return typeof time === "string" && time !== "" ? time : "-";
  return now === undefined ? new Date(moment).toISOString() : formatAge(now - moment);
}

function idIn(cell: Cell | undefined): string | undefined {
  return typeof cell === "object" && cell !== null && "id" in cell ? cell.id : undefined;
}

function hasKey(cell: Cell | undefined, key: string): boolean {
  return typeof cell === "object" && cell !== null && key in cell;
}

function pad(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - Bun.stringWidth(cell)));
}

/** Makes a cell one line without control characters. */
function printable(cell: string): string {
  return visible(cell.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, " "));
}

/** A format for programs: one record a line, fields between separators, as in RFC 4180, but lines end as on Unix. */
type DelimitedFormat = "csv" | "tsv";

/** Renders a table with its header. Ids, times and sizes are complete; a cell without a value is empty. */
export function renderDelimited({ header, rows }: Table, format: DelimitedFormat): string {
  return linesOf([header, ...rows.map((cells) => cells.map(valueOf))], format);
}

/**
 * Renders a result that is not a table by the keys of its JSON form: a record is a line, an array a line for each of its records.
 * Values other than texts and numbers are JSON.
 */
export function renderRecords(json: unknown, format: DelimitedFormat): string {
  const records = (Array.isArray(json) ? json : [json]).map(
    (value: unknown): Record<string, unknown> =>
      typeof value === "object" && value !== null ? { ...value } : { value },
  );
  const keys = [...new Set(records.flatMap((record) => Object.keys(record)))];
  if (keys.length === 0) return "";
  return linesOf([keys, ...records.map((record) => keys.map((key) => textOf(record[key])))], format);
}

function linesOf(lines: readonly (readonly string[])[], format: DelimitedFormat): string {
  const separator = format === "csv" ? "," : "\t";
  const special = format === "csv" ? /[",\r\n]/ : /["\t\r\n]/;
  const quoteField = (text: string) => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines.map((fields) => `${fields.map(quoteField).join(separator)}\n`).join("");
}

function valueOf(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "string") return cell;
  if ("whole" in cell) return cell.whole;
  if ("id" in cell) return cell.id;
  if ("time" in cell) return cell.time === "" ? "" : formatTime(cell.time, undefined);
  return String(cell.value ?? "");
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : jsonText(value);
}
