import { type BoughError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { wrapWords } from "../../terminal/fit.ts";
import { version } from "../../version.ts";
import { findCommand, parseArguments } from "../command-line/arguments.ts";
import type { CommandTable, Entry } from "../command-line/command.ts";
import { type ArgumentDefinition, readTokens, shortOf } from "../command-line/definitions.ts";
import { type GlobalOptions, globalDefinitions } from "../command-line/globals.ts";
import { joinSections, renderGroup, renderRows, wrapText } from "../command-line/help.ts";
import { listWords } from "../command-line/option-values.ts";
import { runCommand } from "../dispatch/run-command.ts";
import type { Runtime } from "../process/runtime.ts";
import { commands } from "./commands.ts";

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
  const found = findEntry(raw.slice(start));
  if (found === undefined) throw await unknownCommand(raw[start] ?? "", raw.slice(start), commands);
  const { entry, path, rest } = (await fallbackWithName(found)) ?? found;
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
  return runCommand(
    await entry.load(),
    rest,
    { name, before, usesDockerSyntax: isAsInDocker, showsFullHelp: helpsFully, commands },
    runtime,
    onGlobals,
  );
}

/** Returns the requested format of errors, even for an invalid command line. */
export function requestedFormat(raw: readonly string[]): GlobalOptions["format"] {
  const isJson = readTokens(raw, globalDefinitions).some(
    (token) => token.kind === "option" && token.name === "format" && token.value === "json",
  );
  return isJson ? "json" : "table";
}

function summaries(table: CommandTable): (readonly [string, string])[] {
  return Object.entries(table).map(([name, { summary }]) => [name, summary]);
}

interface FoundEntry {
  entry: Entry;
  path: string[];
  rest: readonly string[];
}

/** Finds the command or group that the words of the command line name. */
function findEntry(words: readonly string[]): FoundEntry | undefined {
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

/** Returns the fallback of a group if the word after the group's name is an argument of the fallback, as in `docker images NAME`. */
async function fallbackWithName({ entry, path, rest }: FoundEntry): Promise<FoundEntry | undefined> {
  if (!("commands" in entry) || entry.fallbackTakesName !== true) return undefined;
  const [name = ""] = rest;
  if (name === "" || name.startsWith("-") || name === path[0]) return undefined;
  const { hintForDockerCommand } = await import("./docker-hints.ts");
  const isLike = nearest(name, Object.keys(entry.commands)) !== undefined;
  if (isLike || hintForDockerCommand([...path, ...rest]) !== undefined) return undefined;
  const fallback = entry.commands[entry.fallback ?? ""];
  return fallback && { entry: fallback, path, rest };
}

/** Returns the error about an unknown command. `words`: the command line from the command on. */
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

/** The beginning of bough's own help, which fits a screen of 80 by 24. `bough help commands` describes all commands. */
const summary = "bough builds container images from Dockerfiles, and runs commands in images.";

const commonCommands = ["build", "run", "shell", "images", "inspect", "push", "rmi", "doctor"];

/** The other commands, which are listed by name under these titles. */
const moreCommands: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["images", ["bake", "tag", "untag", "layers", "index", "verify", "ls", "cat", "cp"]],
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
        commonCommands.map((name) => [name, commands[name]?.summary ?? ""]),
        columns,
      ),
      renderRows(
        "More commands",
        moreCommands.map(([title, names]) => [title, names.join(", ")]),
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
