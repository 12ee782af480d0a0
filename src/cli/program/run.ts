import { BoughError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { wrapWords } from "../../terminal/fit.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import { version } from "../../version.ts";
import { findCommand, parseArguments, type Values } from "../command-line/arguments.ts";
import type { Command, CommandTable, Entry } from "../command-line/command.ts";
import {
  type ArgumentDefinition,
  type ArgumentDefinitions,
  readTokens,
  shortOf,
} from "../command-line/definitions.ts";
import { type GlobalOptions, globalDefinitions, readGlobals } from "../command-line/globals.ts";
import {
  argumentsOf,
  joinSections,
  renderGroup,
  renderHelp,
  renderRows,
  renderUsual,
  wrapText,
} from "../command-line/help.ts";
import { listWords } from "../command-line/option-values.ts";
import { runLoaded } from "../command-line/run-loaded.ts";
import { withVariables } from "../process/environment.ts";
import type { Runtime } from "../process/runtime.ts";
import { commands } from "./commands.ts";
import { asInDocker, readArguments } from "./read-arguments.ts";

/**
 * Runs the command line and returns the exit code. Rejects with a BoughError. Calls `onGlobals` as soon as the global options
 * are known.
 */
export async function runCommandLine(
  raw: readonly string[],
  runtime: Runtime,
  onGlobals: (globals: GlobalOptions) => void,
  { helpsFully = false }: { helpsFully?: boolean } = {},
): Promise<number> {
  const start = findCommand(raw, globalDefinitions);
  const before = parseArguments(raw.slice(0, start), globalDefinitions, "bough");
  const print = (render: (columns: number) => string) => runtime.stdout.writeAlone(render);
  const printVersion = () => print(() => `${version}\n`);
  if (before.flag("version") || raw[start] === "version") {
    printVersion();
    return 0;
  }
  if (raw[start] === "help" && !before.flag("help")) {
    const words = raw.slice(start + 1);
    const [topic] = words;
    const isOption = topic?.startsWith("-") === true;
    if (topic !== undefined && (isOption || Object.hasOwn(commands, topic)))
      return runCommandLine([...words, "--help"], runtime, onGlobals, { helpsFully: true });
    const { showTopic, showTopics } = await import("../help/topics.ts");
    if (topic === undefined) showTopics(runtime.stdout);
    else showTopic(topic, runtime.stdout, commands);
    return 0;
  }
  if (before.flag("help")) {
    print((columns) => renderOverview(commands, columns));
    return 0;
  }
  if (start >= raw.length) {
    throw usageError("bough: no command given", "`bough -h` lists the commands.");
  }
  const found = descend(raw.slice(start));
  if (found === undefined) throw await unknownCommand(raw[start] ?? "", raw.slice(start), commands);
  const { entry, path, rest } = (await namedInGroup(found)) ?? found;
  const name = `bough ${path.join(" ")}`;

  if ("commands" in entry) {
    const values = parseArguments(
      rest,
      { ...globalDefinitions, command: { type: "positional", multiple: true } },
      name,
    );
    if (values.flag("help")) {
      print((columns) => renderGroup(name, entry.summary, summaries(entry.commands), columns));
      return 0;
    }
    const given = values.positionals[0];
    throw given === undefined
      ? usageError(`${name}: no command given`, `It takes ${listWords(Object.keys(entry.commands))}.`)
      : await unknownCommand(`${name} ${given}`, [...path, ...values.positionals], entry.commands);
  }
  const isAsInDocker = before.flag("docker") || runtime.environment.BOUGH_DOCKER === "1";
  return runCommand(await entry.load(), rest, { name, before, isAsInDocker, helpsFully }, runtime, onGlobals);
}

interface CommandLine {
  /** How the user calls the command: `bough build`, or `docker buildx build`. */
  name: string;
  /** The options before the command's name. */
  before: Values;
  /** True if options have the letters and meanings that they have in docker. */
  isAsInDocker: boolean;
  helpsFully?: boolean;
}

/** Runs a command with the words after its name. Returns the exit code. */
export async function runCommand(
  command: Command,
  words: readonly string[],
  { name, before, isAsInDocker, helpsFully = false }: CommandLine,
  runtime: Runtime,
  onGlobals: (globals: GlobalOptions) => void,
): Promise<number> {
  const definitions = definitionsOf(command);
  const values = await readArguments(words, definitions, name, command, isAsInDocker);
  if (values.flag("help") || values.flag("version")) {
    const { usual } = command;
    const print = (render: (columns: number) => string) => runtime.stdout.writeAlone(render);
    const shown = isAsInDocker ? await withDockersLetters(command) : command;
    if (!values.flag("help")) print(() => `${version}\n`);
    else if (usual === undefined || helpsFully) print((columns) => renderHelp(shown, name, columns));
    else print((columns) => renderUsual(shown, name, usual, columns));
    return 0;
  }
  checkPlaces(values, argumentsOf(command.definition), name);

  const globals = readGlobals(before, values, name);
  const engineProblem = await prepareEngine(command, values, globals, runtime);
  onGlobals(globals);
  const { stderr } = runtime;
  // Loaded only now, so that help and version are fast.
  const { createLog } = await import("../../terminal/log.ts");
  const { withRegistryOptions } = await import("../service/registry-options.ts");
  const log = createLog(globals.logLevel, (text) => stderr.write(formatLogLines(text, stderr)));
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
 * Enters what the engine needs if the command works with it: see `enterUserNamespace`. Returns why that is impossible. A command that
 * does not get to its engine goes without.
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
  (await import("../service/choice.ts")).requireStateOfOwn(runtime);
  return (await import("../process/user-namespace.ts")).enterUserNamespace(runtime);
}

/** Returns false as well for a choice that is an error: the command reports it, after what it says of its own options. */
async function choosesEngine(runtime: Runtime, globals: GlobalOptions): Promise<boolean> {
  const { isEmbedded } = await import("../service/choice.ts");
  try {
    return isEmbedded(runtime, globals);
  } catch (error) {
    if (error instanceof BoughError) return false;
    throw error;
  }
}

async function withDockersLetters(command: Command): Promise<Command> {
  const { definition } = command;
  const args = asInDocker([], argumentsOf(definition), await command.foreign?.());
  return { ...command, definition: { ...definition, args } };
}

/** Returns the options that a command takes, the global ones included. */
export function definitionsOf({ definition }: Command): ArgumentDefinitions {
  return { ...globalsBeside(argumentsOf(definition)), ...argumentsOf(definition) };
}

/** Returns the format of errors, even for an invalid command line. */
export function requestedFormat(raw: readonly string[]): GlobalOptions["format"] {
  const isJson = readTokens(raw, globalDefinitions).some(
    (token) => token.kind === "option" && token.name === "format" && token.value === "json",
  );
  return isJson ? "json" : "table";
}

function summaries(table: CommandTable): (readonly [string, string])[] {
  return Object.entries(table).map(([name, { summary }]) => [name, summary]);
}

interface Found {
  entry: Entry;
  path: string[];
  rest: readonly string[];
}

/** Walks down the table along the words of the command line. */
function descend(words: readonly string[]): Found | undefined {
  const [first = "", ...others] = words;
  const entry = Object.hasOwn(commands, first) ? commands[first] : undefined;
  if (entry === undefined) return undefined;
  if ("load" in entry) return { entry, path: [first], rest: others };
  const second = others[0] ?? "";
  const below = Object.hasOwn(entry.commands, second) ? entry.commands[second] : undefined;
  if (below !== undefined) return { entry: below, path: [first, second], rest: others.slice(1) };
  const fallback = entry.commands[entry.fallback ?? ""];
  const isBare = second === "" || (second.startsWith("-") && second !== "-h" && second !== "--help");
  if (fallback !== undefined && isBare) return { entry: fallback, path: [first], rest: others };
  return { entry, path: [first], rest: others };
}

/** Returns the group's fallback if what follows the group's name is an argument of it, as in `docker images NAME`. */
async function namedInGroup({ entry, path, rest }: Found): Promise<Found | undefined> {
  if (!("commands" in entry) || entry.fallbackTakesName !== true) return undefined;
  const [name = ""] = rest;
  if (name === "" || name.startsWith("-") || name === path[0]) return undefined;
  const { hintForDockerCommand } = await import("./docker-hints.ts");
  const isLike = nearest(name, Object.keys(entry.commands)) !== undefined;
  if (isLike || hintForDockerCommand([...path, ...rest]) !== undefined) return undefined;
  const fallback = entry.commands[entry.fallback ?? ""];
  return fallback && { entry: fallback, path, rest };
}

/** `words`: the command line, from the command on. */
async function unknownCommand(
  shown: string,
  words: readonly string[],
  table: CommandTable,
): Promise<BoughError> {
  const { hintForDockerCommand } = await import("./docker-hints.ts");
  const dockerHint = hintForDockerCommand(words);
  const given = (table === commands ? words[0] : words[1]) ?? "";
  const guess = nearest(given, [...Object.keys(table), ...(table === commands ? ["help"] : [])]);
  const known =
    table === commands
      ? "`bough -h` lists the commands."
      : `\`bough ${words[0]}\` takes ${listWords(Object.keys(table))}.`;
  const guessed = guess === undefined ? known : `Did you mean ${guess}?`;
  return usageError(`unknown command ${JSON.stringify(shown)}`, dockerHint ?? guessed);
}

/** Returns the global options, without the letters that the command's own options use. */
function globalsBeside(own: ArgumentDefinitions): ArgumentDefinitions {
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

function checkPlaces(values: Values, definitions: ArgumentDefinitions, name: string): void {
  const required = Object.entries(definitions).filter(
    ([, { type, required }]) => type === "positional" && required === true,
  );
  const missing = required[values.positionals.length];
  const usage = { kind: "usage", hint: `\`${name} -h\` shows how it is used.` } as const;
  if (missing !== undefined)
    throw usageError(`${name}: ${missing[0].toUpperCase()} is missing`, missing[1].missingHint ?? usage.hint);
  // For example an unset variable of a script. As a path it would mean the directory `.`, or all of an image.
  const empty = values.positionals.indexOf("");
  if (empty >= 0) {
    const places = Object.keys(definitions).filter((place) => definitions[place]?.type === "positional");
    const place = places[Math.min(empty, places.length - 1)] ?? "";
    throw new BoughError(`${name}: ${place.toUpperCase()} is empty`, usage);
  }
  if (values.rest?.[0] === "" && values.positionals.length === 0)
    throw new BoughError(`${name}: COMMAND is empty`, usage);
}

/** The help text of bough itself, which fits a screen of 80 by 24. `bough help commands` has the rest. */
const summary = "bough builds container images from Dockerfiles, and runs commands in images.";

const common = ["build", "run", "shell", "images", "inspect", "push", "rmi", "doctor"];

/** The other commands, whose names say enough beside these titles. */
const more: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["images", ["bake", "tag", "untag", "index", "ls", "cat", "cp"]],
  ["sessions", ["use", "cd", "env", "session"]],
  ["operations", ["history", "ps", "show", "logs", "kill", "wait"]],
  ["disk, cache", ["engine", "cache"]],
  ["services", ["auth", "serve"]],
  ["bough itself", ["agent", "skill", "mcp", "plugin", "completion", "licenses", "release-key"]],
];

const usualOptions = ["session", "profile", "url", "local", "format", "log-level", "quiet"] as const;

const footer =
  "`bough COMMAND -h` says more, `bough help commands` describes all commands and options, `bough help` lists topics. Coding agents: read `bough agent` first.";

function renderOverview(commands: CommandTable, columns: number): string {
  return joinSections([
    `${wrapText(summary, columns)}\nUsage: bough [OPTIONS] COMMAND [ARGUMENTS]`,
    [
      renderRows(
        "Common commands",
        common.map((name) => [name, commands[name]?.summary ?? ""]),
        columns,
      ),
      renderRows(
        "More commands",
        more.map(([title, names]) => [title, names.join(", ")]),
        columns,
      ),
      wrapWords("Options: ", [...usualOptions.map(describeOption), "..."], { indent: 2, columns }),
    ].join("\n"),
    wrapText(footer, columns),
  ]);
}

function describeOption(name: (typeof usualOptions)[number]): string {
  const definition: ArgumentDefinition = globalDefinitions[name];
  const letter = shortOf(definition);
  const hint = definition.valueHint === undefined ? "" : ` ${definition.valueHint}`;
  return `${letter === undefined ? `--${name}` : `-${letter}`}${hint},`;
}
