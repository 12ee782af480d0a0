/** Tables for programs: one record a line, fields between separators, as in RFC 4180, but lines end as on Unix. */
import { jsonText } from "./json-text.ts";
import { type Cell, formatTime, type Table } from "./table.ts";

type DelimitedFormat = "csv" | "tsv";

/** Renders a table with its header. Ids, times and sizes are complete; a cell without a value is empty. */
export function renderDelimited({ header, rows }: Table, format: DelimitedFormat): string {
  return linesOf([header, ...rows.map((cells) => cells.map(valueOf))], format);
}

/**
 * Renders a result that is no table by the keys of its JSON form: a record is a line, an array a line for each of its records.
 * What is not a text or a number is JSON.
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
