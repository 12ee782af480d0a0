import type { Command, Invocation } from "./command.ts";

/** Runs a command whose arguments are parsed and checked already: citty is given none to look for. Returns the exit code. */
export async function runLoaded(command: Command, invocation: Invocation): Promise<number> {
  // Not loaded where only help or the version is asked for: that is to be there at once.
  const { runCommand } = await import("citty");
  const { result } = await runCommand({ ...command.definition, args: {} }, { rawArgs: [], data: invocation });
  return typeof result === "number" ? result : 0;
}
