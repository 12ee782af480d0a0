import { noValues, type TrailingCommand, type Values } from "../command-line/arguments.ts";
import type { CommandTable, Entry } from "../command-line/command.ts";
import {
  type ArgumentDefinition,
  type ArgumentDefinitions,
  type Completes,
  shortOf,
} from "../command-line/definitions.ts";
import { globalDefinitions, readGlobals } from "../command-line/globals.ts";
import { argumentsOf } from "../command-line/help.ts";
import type { Topic } from "../help/topics.ts";
import type { Runtime } from "../process/runtime.ts";
import { findNames } from "./candidate-names.ts";

/**
 * Returns the candidates for the word under the cursor, each with a tab and a description if it has one. Never rejects, since a
 * shell can't show errors while it completes.
 */
export async function findCandidates(
  line: string,
  commands: CommandTable,
  runtime: Runtime,
): Promise<string[]> {
  const { words, current } = splitPartialLine(line);
  try {
    const { topics } = await import("../help/topics.ts");
    const partial = await readPartialCommand(words, { ...commands, help: helpEntry(commands, topics) });
    return await completeWord(partial, current, runtime);
  } catch {
    return [];
  }
}

/** Returns `help` as a group of commands, one for each command and topic that it takes. */
function helpEntry(commands: CommandTable, topics: Readonly<Record<string, Topic>>): Entry {
  const nameOnly = (table: Readonly<Record<string, Entry | Topic>>): CommandTable =>
    Object.fromEntries(
      Object.entries(table).map(([name, entry]) => [
        name,
        { summary: entry.summary, commands: "commands" in entry ? nameOnly(entry.commands) : {} },
      ]),
    );
  return {
    summary: "Show the manual: a topic, or all options of a command",
    commands: { ...nameOnly(commands), ...nameOnly(topics) },
  };
}

/** What the words before the cursor mean. */
interface PartialCommand {
  /** The commands that may follow; `undefined` after a command. */
  table: CommandTable | undefined;
  definitions: ArgumentDefinitions;
  /** The option whose value comes next. */
  pendingOption: ArgumentDefinition | undefined;
  /** True after `--`, or after the positional argument of a command that takes the rest verbatim. */
  isRest: boolean;
  trailingCommand: TrailingCommand | undefined;
  positionals: string[];
  options: Map<string, string>;
}

async function readPartialCommand(words: readonly string[], commands: CommandTable): Promise<PartialCommand> {
  const partial: PartialCommand = {
    table: commands,
    definitions: globalDefinitions,
    pendingOption: undefined,
    isRest: false,
    trailingCommand: undefined,
    positionals: [],
    options: new Map(),
  };
  let name = "";
  for (const word of words) {
    if (partial.isRest) continue;
    if (partial.pendingOption !== undefined) {
      partial.options.set(name, word);
      partial.pendingOption = undefined;
    } else if (word === "--") {
      partial.isRest = true;
    } else if (word.startsWith("-") && word !== "-") {
      const option = findOption(word, partial.definitions);
      if (option === undefined) continue;
      name = option.name;
      if (
        option.definition.type !== "boolean" &&
        option.definition.optional === undefined &&
        option.value === undefined
      )
        partial.pendingOption = option.definition;
      else partial.options.set(name, option.value ?? "");
    } else {
      await applyWord(partial, word);
    }
  }
  return partial;
}

/** Handles a word that is not an option: a command, or an argument of one. */
async function applyWord(partial: PartialCommand, word: string): Promise<void> {
  const entry =
    partial.table !== undefined && Object.hasOwn(partial.table, word) ? partial.table[word] : undefined;
  if (entry === undefined) {
    partial.table = undefined;
    partial.positionals.push(word);
    partial.isRest = partial.trailingCommand === "behind-place";
  } else if ("commands" in entry) {
    partial.table = entry.commands;
    const fallback = entry.commands[entry.fallback ?? ""];
    if (fallback !== undefined && "load" in fallback) await enterCommand(partial, fallback.load);
  } else {
    partial.table = undefined;
    await enterCommand(partial, entry.load);
  }
}

async function enterCommand(
  partial: PartialCommand,
  load: Extract<Entry, { load: unknown }>["load"],
): Promise<void> {
  const { definition, trailingCommand } = await load();
  partial.definitions = { ...globalDefinitions, ...argumentsOf(definition) };
  partial.trailingCommand = trailingCommand;
}

function findOption(
  word: string,
  definitions: ArgumentDefinitions,
): { name: string; definition: ArgumentDefinition; value: string | undefined } | undefined {
  const [, dashes = "", given = "", value] = /^(--?)([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === "positional") continue;
    if (dashes === "--" ? name === given : shortOf(definition) === given) return { name, definition, value };
  }
  return undefined;
}

async function completeWord(partial: PartialCommand, current: string, runtime: Runtime): Promise<string[]> {
  if (partial.isRest) return [":files"];
  const inline = /^(--[^=]+=)(.*)$/s.exec(current);
  if (inline !== null && partial.pendingOption === undefined) {
    const definition = findOption(current, partial.definitions)?.definition;
    const values = await completeValue(definition?.completes, inline[2] ?? "", partial, runtime);
    return values.map((value) => (value.startsWith(":") ? value : `${inline[1]}${value}`));
  }
  if (partial.pendingOption !== undefined)
    return completeValue(partial.pendingOption.completes, current, partial, runtime);
  if (current.startsWith("-")) return completeOptions(partial, current);
  const names = Object.entries(partial.table ?? {}).filter(([name]) => name.startsWith(current));
  if (names.length > 0) return names.map(([name, { summary }]) => `${name}\t${summary}`);
  if (partial.table !== undefined && partial.definitions === globalDefinitions) return [];
  return completeValue(nextPositional(partial)?.completes, current, partial, runtime);
}

function nextPositional({ definitions, positionals }: PartialCommand): ArgumentDefinition | undefined {
  const places = Object.values(definitions).filter(({ type }) => type === "positional");
  return places[positionals.length] ?? places.find(({ multiple }) => multiple === true);
}

function completeOptions({ definitions, options }: PartialCommand, current: string): string[] {
  return Object.entries(definitions).flatMap(([name, { type, multiple, description }]) => {
    const isSpent = options.has(name) && multiple !== true;
    const option = `--${name}`;
    return type === "positional" || isSpent || !option.startsWith(current)
      ? []
      : `${option}\t${description ?? ""}`;
  });
}

async function completeValue(
  completes: Completes | undefined,
  current: string,
  partial: PartialCommand,
  runtime: Runtime,
): Promise<string[]> {
  if (completes === undefined) return [];
  if (completes === "file") return [":files"];
  if (completes === "named-file") return /[:=]/.test(current) ? [":named-files"] : [];
  if (completes === "directory") return [":directories"];
  const values = valuesOf(partial);
  const names =
    typeof completes === "string"
      ? await findNames(completes, current, { runtime, globals: readGlobals(noValues, values), values })
      : completes;
  // A line end or a tab in a name would be read as another candidate.
  return names.filter((name) => name.startsWith(current) && !/[\u0000-\u001f\u007f]/.test(name));
}

/** Returns the typed options and arguments, which select the service, the session and the Dockerfile. */
function valuesOf({ options, positionals }: PartialCommand): Values {
  return {
    ...noValues,
    positionals,
    flag: (name) => options.has(name),
    text: (name) => (name === "format" || name === "log-level" ? undefined : options.get(name)),
  };
}

/** A command line that is still being typed, split as by a shell. */
interface PartialLine {
  /** Complete words, without the program's name. */
  words: string[];
  /** The word that the cursor is in, as far as it is typed; empty after a space. */
  current: string;
}

export function splitPartialLine(line: string): PartialLine {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? "";
    if (quote === "" && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= "";
    if (quote === "" && (character === "'" || character === '"')) quote = character;
    else if (character === quote) quote = "";
    else if (character === "\\" && quote !== "'") word += line[++at] ?? "";
    else word += character;
  }
  return { words: words.slice(1), current: words.length === 0 ? "" : (word ?? "") };
}
