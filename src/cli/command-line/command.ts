import { type CommandDef, defineCommand } from "citty";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import type { ArgumentDefinitions, TakesRest, Values } from "./arguments.ts";
import type { GlobalOptions } from "./globals.ts";

/**
 * One of bough's commands: citty's definition, and what its help shows beside the arguments. A number that its `run`
 * returns is the process's exit code. citty is here for the form of a definition, which help, completion and the agent's
 * manual are made from; arguments.ts reads the command line, and run-loaded.ts runs the command.
 */
export interface Command {
  definition: CommandDef;
  /** Command lines without the leading `bough`, each with what it does. */
  examples: readonly (readonly [line: string, meaning: string])[];
  /** What a coding agent has to know before it uses the command. */
  agentNote?: string;
  takesRest?: TakesRest;
  /** What to do instead of options that other programs have, by option: `--target`. */
  foreignOptions?: Readonly<Record<string, string>>;
}

interface CommandForm extends Omit<Command, "definition"> {
  /** Its own, without those of the groups that it is in. */
  name: string;
  description: string;
  args?: ArgumentDefinitions;
  run(invocation: Invocation): unknown;
}

/** `build` has its command without this function, so that it need not load citty. */
export function command({ name, description, args = {}, run, ...shown }: CommandForm): Command {
  const definition = defineCommand({ meta: { name, description }, args, run: ({ data }) => run(data) });
  return { definition, ...shown };
}

/** A command, loaded when it is called, or a group of them. */
export type Entry = { summary: string; load: () => Promise<Command> } | Group;

interface Group {
  summary: string;
  commands: CommandTable;
  /** The command that the group's bare name stands for. */
  fallback?: string;
}

export type CommandTable = Readonly<Record<string, Entry>>;

/** What a command is run with; citty hands it over as `data`. */
export interface Invocation {
  values: Values;
  globals: GlobalOptions;
  runtime: Runtime;
  log: Log;
  /** All commands there are. */
  commands: CommandTable;
}
