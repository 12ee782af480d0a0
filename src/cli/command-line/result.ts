import { renderDelimited, renderRecords } from "../../terminal/delimited.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { renderTable, type Table, type TableStyle } from "../../terminal/table.ts";
import { visible, visibleLines } from "../../visible.ts";
import type { Invocation } from "./command.ts";

/** A command's result in its forms, for standard output. */
export interface Result {
  /** All that `--quiet` prints, each id on a separate line. */
  id: string | readonly string[];
  /** The result of `-f json`: one object or one array, with stable keys. */
  json: unknown;
  /** A table, or a text for people: for `-f csv` and `-f tsv` a line for each record of `json` stands in for it. */
  table: (style: TableStyle) => Table | string;
}

export function printResult(
  { globals, runtime }: Pick<Invocation, "globals" | "runtime">,
  result: Result,
): void {
  const { stdout, clock } = runtime;
  if (globals.quiet) stdout.write(linesOf(result.id, stdout.isTerminal));
  else if (globals.format === "json") stdout.write(`${jsonText(result.json, { indent: 2 })}\n`);
  else if (globals.format === "table") {
    const { isTerminal, columns, hasColor } = stdout;
    const narrow = { now: clock.now(), ...(isTerminal ? { columns } : {}) };
    const style = { hasColor, ...(globals.wide ? {} : narrow) };
    const shown = result.table(style);
    stdout.write(typeof shown === "string" ? shown : renderTable(shown, style));
  } else {
    const table = result.table({});
    const text =
      typeof table === "string"
        ? renderRecords(result.json, globals.format)
        : renderDelimited(table, globals.format);
    stdout.write(stdout.isTerminal ? visibleLines(text) : text);
  }
}

/** Returns one line for each id, with line breaks in it escaped; for a terminal, all control characters. */
function linesOf(id: Result["id"], isTerminal: boolean): string {
  const ids = typeof id === "string" ? [id] : id;
  return ids
    .filter((each) => each !== "")
    .map((each) => `${isTerminal ? visible(each) : each.replace(/[\r\n]/g, visible)}\n`)
    .join("");
}
