import type { CommandDef } from "citty";
import type { Log } from "../output/log.ts";
import type { Values } from "./arguments.ts";
import type { GlobalOptions } from "./globals.ts";
import type { Runtime } from "./runtime.ts";

/**
 * One of bough's commands: citty's definition, and what its help shows beside the arguments. A number that its `run`
 * answers is the process's exit code.
 */
export interface Command {
  definition: CommandDef;
  /** Command lines without the leading `bough`, each with what it does. */
  examples: readonly (readonly [line: string, meaning: string])[];
  /** What a coding agent has to know before it uses the command. */
  agentNote?: string;
  /** Takes what follows `--`. */
  takesRest?: boolean;
}

/** What a command is run with; citty hands it over as `data`. */
export interface Invocation {
  values: Values;
  globals: GlobalOptions;
  runtime: Runtime;
  log: Log;
}
