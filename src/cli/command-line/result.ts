import { jsonText } from "../../terminal/json-text.ts";
import type { TableStyle } from "../../terminal/table.ts";
import type { Invocation } from "./command.ts";

/** A command's result in its three forms, for standard output. */
export interface Result {
  /** All that `--quiet` prints; several ids stand on lines of their own. */
  id: string;
  /** For `-f json`: one object or one array, with stable keys. */
  json: unknown;
  table: (style: TableStyle) => string;
}

export function printResult(
  { globals, runtime }: Pick<Invocation, "globals" | "runtime">,
  result: Result,
): void {
  const { stdout } = runtime;
  if (globals.quiet) stdout.write(result.id === "" ? "" : `${result.id}\n`);
  else if (globals.format === "json") stdout.write(`${jsonText(result.json, { indent: 2 })}\n`);
  else {
    const { isTerminal, columns, hasColor } = stdout;
    stdout.write(result.table({ hasColor, ...(isTerminal ? { columns } : {}) }));
  }
}
