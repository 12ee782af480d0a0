import { jsonText } from "../../terminal/json-text.ts";
import type { TableStyle } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import type { Invocation } from "./command.ts";

/** A command's result in its three forms, for standard output. */
export interface Result {
  /** All that `--quiet` prints, each id on a separate line. */
  id: string | readonly string[];
  /** The result of `-f json`: one object or one array, with stable keys. */
  json: unknown;
  table: (style: TableStyle) => string;
}

export function printResult(
  { globals, runtime }: Pick<Invocation, "globals" | "runtime">,
  result: Result,
): void {
  const { stdout, clock } = runtime;
  if (globals.quiet) stdout.write(linesOf(result.id, stdout.isTerminal));
  else if (globals.format === "json") stdout.write(`${jsonText(result.json, { indent: 2 })}\n`);
  else {
    const { isTerminal, columns, hasColor } = stdout;
    const narrow = { now: clock.now(), ...(isTerminal ? { columns } : {}) };
    stdout.write(result.table({ hasColor, ...(globals.wide ? {} : narrow) }));
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
