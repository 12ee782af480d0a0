import { type CommandDef, defineCommand } from "citty";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import type { TrailingCommand, Values } from "./arguments.ts";
import type { ArgumentDefinitions } from "./definitions.ts";
import type { ForeignOptions } from "./foreign-options.ts";
import type { GlobalOptions } from "./globals.ts";

/**
 * One of bough's commands: citty's definition, and what its help shows in addition to the arguments. A number that its `run`
 * returns is the process's exit code. citty provides only the form of a definition, from which help, completion and the
 * agent's manual are made. arguments.ts parses the command line, and run-loaded.ts runs the command.
 */
export interface Command {
  definition: CommandDef;
  /** Command lines without the leading `bough`, each with its meaning. */
  examples: readonly (readonly [line: string, meaning: string])[];
  /** What `-h` shows, so that it fits a screen. `bough help COMMAND` shows all. */
  usual?: UsualHelp;
  /** Facts that a coding agent must know before it uses the command. */
  agentNote?: string;
  /**
   * What the command works with: the chosen service, which may be the embedded engine, or always the engine. An ordinary user's
   * process starts again for the engine, in a user namespace, before the command reads anything.
   */
  needs?: Need | ((values: Values) => Need | undefined);
  trailingCommand?: TrailingCommand;
  /** Loads the options of other programs that people may write. */
  foreign?: () => Promise<ForeignOptions>;
}

type Need = "service" | "engine";

export interface UsualHelp {
  /** The usual options. */
  groups: readonly { title: string; options: readonly string[] }[];
  /** The command's `agentNote` in two lines. */
  agentNote: string;
}

interface CommandForm extends Omit<Command, "definition"> {
  /** The command's own name, without the names of its groups. */
  name: string;
  description: string;
  args?: ArgumentDefinitions;
  run(invocation: Invocation): unknown;
}

/** Makes a command. `build` does not call this, so that it need not load citty. */
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
  /** True if a word that is no command, nor like one, is an argument of the fallback. */
  fallbackTakesName?: boolean;
}

export type CommandTable = Readonly<Record<string, Entry>>;

/** What an operation has beside its request: from whom it comes, on which machine. */
export interface Surroundings {
  globals: GlobalOptions;
  runtime: Runtime;
  log: Log;
}

/** The input of a command's `run`; citty passes it as `data`. */
export interface Invocation extends Surroundings {
  values: Values;
  /** All of bough's commands. */
  commands: CommandTable;
}
