import { BoughError, usageError } from "../../errors.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import { version } from "../../version.ts";
import type { ParsedValues, Values } from "../command-line/arguments.ts";
import type { Command, CommandTable } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { type GlobalOptions, globalDefinitions, readGlobals } from "../command-line/globals.ts";
import { argumentsOf, renderHelp, renderUsual } from "../command-line/help.ts";
import { runLoaded } from "../command-line/run-loaded.ts";
import { withVariables } from "../process/environment.ts";
import type { Runtime } from "../process/runtime.ts";
import { readArguments, withDockerLetters } from "./read-arguments.ts";

interface CommandLine {
  /** The command as the user writes it: `bough build`, or `docker buildx build`. */
  name: string;
  /** The options before the command's name. */
  before: Values;
  /** True if options have the letters and meanings that they have in docker. */
  usesDockerSyntax: boolean;
  showsFullHelp?: boolean;
  /** All of bough's commands. */
  commands: CommandTable;
}

/** Runs a command with the words after its name. Returns the exit code. */
export async function runCommand(
  command: Command,
  words: readonly string[],
  line: CommandLine,
  runtime: Runtime,
  onGlobals: (globals: GlobalOptions) => void,
): Promise<number> {
  const values = await readArguments(
    words,
    definitionsOf(command),
    line.name,
    command,
    line.usesDockerSyntax,
  );
  return runRequest(command, values, line, runtime, onGlobals);
}

/** Runs a command with parsed options and arguments. Returns the exit code. */
export async function runRequest(
  command: Command,
  values: ParsedValues,
  { name, before, usesDockerSyntax: isAsInDocker, showsFullHelp: helpsFully = false, commands }: CommandLine,
  runtime: Runtime,
  onGlobals: (globals: GlobalOptions) => void,
): Promise<number> {
  if (values.flag("help") || values.flag("version")) {
    const { usual } = command;
    const print = (render: (columns: number) => string) => runtime.stdout.writeAlone(render);
    const shown = isAsInDocker ? await commandWithDockerLetters(command) : command;
    if (!values.flag("help")) print(() => `${version}\n`);
    else if (usual === undefined || helpsFully) print((columns) => renderHelp(shown, name, columns));
    else print((columns) => renderUsual(shown, name, usual, columns));
    return 0;
  }
  requirePositionals(values, argumentsOf(command.definition), name);

  const globals = readGlobals(before, values, name);
  const engineProblem = await prepareEngine(command, values, globals, runtime);
  onGlobals(globals);
  const { stderr } = runtime;
  // Loaded only now, so that help and version are fast.
  const { createLog } = await import("../../terminal/log.ts");
  const { withRegistryOptions } = await import("../service/registry-options.ts");
  const log = createLog(
    globals.logLevel,
    (text) => stderr.write(formatLogLines(text, stderr)),
    runtime.wordsOf,
  );
  for (const sentence of values.ignored) log.warn(sentence);
  const environment = withVariables(
    withRegistryOptions(values, runtime),
    isAsInDocker ? { BOUGH_DOCKER: "1" } : {},
  );
  return runLoaded(command, {
    ...{ values, globals, log, commands },
    runtime: { ...runtime, environment, engineProblem },
  });
}

/**
 * Enters the user namespace that the engine needs, if the command uses the engine: see `enterUserNamespace`. Returns the error if that is
 * impossible, which the command reports once it starts the engine.
 */
async function prepareEngine(
  { needs }: Command,
  values: Values,
  globals: GlobalOptions,
  runtime: Runtime,
): Promise<BoughError | undefined> {
  const needed = typeof needs === "function" ? needs(values) : needs;
  if (needed === undefined || runtime.platform !== "linux") return undefined;
  if (needed === "service" && !(await choosesEngine(runtime, globals))) return undefined;
  (await import("../service/choice.ts")).requireOwnStateDirectory(runtime);
  return (await import("../process/user-namespace.ts")).enterUserNamespace(runtime);
}

/** True if the engine is chosen. False also for an invalid choice, which the command reports after errors of its own options. */
async function choosesEngine(runtime: Runtime, globals: GlobalOptions): Promise<boolean> {
  const { isEmbedded } = await import("../service/choice.ts");
  try {
    return isEmbedded(runtime, globals);
  } catch (error) {
    if (error instanceof BoughError) return false;
    throw error;
  }
}

async function commandWithDockerLetters(command: Command): Promise<Command> {
  const { definition } = command;
  const args = withDockerLetters([], argumentsOf(definition), await command.foreign?.());
  return { ...command, definition: { ...definition, args } };
}

/** Returns the options that a command takes, the global ones included. */
export function definitionsOf({ definition }: Command): ArgumentDefinitions {
  return { ...otherGlobals(argumentsOf(definition)), ...argumentsOf(definition) };
}

/** Returns the global options without letters that the command's own options use. */
function otherGlobals(own: ArgumentDefinitions): ArgumentDefinitions {
  const letters = new Set(
    Object.values(own).flatMap((definition) =>
      "alias" in definition ? [definition.alias ?? []].flat() : [],
    ),
  );
  return Object.fromEntries(
    Object.entries(globalDefinitions).map(([name, definition]) => {
      if (!("alias" in definition) || !letters.has(definition.alias)) return [name, definition];
      const { alias: _, ...rest } = definition;
      return [name, rest];
    }),
  );
}

function requirePositionals(values: Values, definitions: ArgumentDefinitions, name: string): void {
  const required = Object.entries(definitions).filter(
    ([, { type, required }]) => type === "positional" && required === true,
  );
  const missing = required[values.positionals.length];
  const usage = { kind: "usage", hint: `\`${name} -h\` shows how it is used.` } as const;
  if (missing !== undefined)
    throw usageError(`${name}: ${missing[0].toUpperCase()} is missing`, missing[1].missingHint ?? usage.hint);
  // An empty argument is often an unset variable of a script. As a path it would mean the directory `.`, or all of an image.
  const empty = values.positionals.indexOf("");
  if (empty >= 0) {
    const places = Object.keys(definitions).filter((place) => definitions[place]?.type === "positional");
    const place = places[Math.min(empty, places.length - 1)] ?? "";
    throw new BoughError(`${name}: ${place.toUpperCase()} is empty`, usage);
  }
  if (values.rest?.[0] === "" && values.positionals.length === 0)
    throw new BoughError(`${name}: COMMAND is empty`, usage);
}
