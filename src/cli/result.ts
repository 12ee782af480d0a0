import type { Invocation } from "./command.ts";

/** A command's result in its three forms, for standard output. */
export interface Result {
  /** All that `--quiet` prints; several ids stand on lines of their own. */
  id: string;
  /** For `-f json`: one object or one array, with stable keys. */
  json: unknown;
  table: () => string;
}

export function printResult(
  { globals, runtime }: Pick<Invocation, "globals" | "runtime">,
  result: Result,
): void {
  const { stdout } = runtime;
  if (globals.quiet) stdout.write(result.id === "" ? "" : `${result.id}\n`);
  else stdout.write(globals.format === "json" ? `${JSON.stringify(result.json, null, 2)}\n` : result.table());
}
