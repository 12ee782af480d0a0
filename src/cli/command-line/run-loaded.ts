import type { Command, Invocation } from "./command.ts";

/**
 * Runs a command whose arguments are already parsed and checked. citty's function for that would load another parser.
 * Returns the exit code.
 */
export async function runLoaded({ definition }: Command, invocation: Invocation): Promise<number> {
  const context = { rawArgs: [], args: Object.create(null), cmd: definition, data: invocation };
  const result: unknown = await definition.run?.(context);
  return typeof result === "number" ? result : 0;
}
