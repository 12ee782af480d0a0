import type { TakesRest, Values } from "../command-line/arguments.ts";
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
    const place = await findPlace(words, { ...commands, help: helpOn(commands, topics) });
    return await offer(place, current, runtime);
  } catch {
    return [];
  }
}

/** `help` as a group of the commands and topics that it takes. */
function helpOn(commands: CommandTable, topics: Readonly<Record<string, Topic>>): Entry {
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

/** The place of the next word on a command line. */
interface Place {
  /** The commands to choose from, before one is named. */
  table: CommandTable | undefined;
  definitions: ArgumentDefinitions;
  /** The option whose value comes next. */
  awaiting: ArgumentDefinition | undefined;
  /** True after `--`, or after the positional argument of a command that takes the rest verbatim. */
  isRest: boolean;
  takesRest: TakesRest | undefined;
  positionals: string[];
  options: Map<string, string>;
}

async function findPlace(words: readonly string[], commands: CommandTable): Promise<Place> {
  const place: Place = {
    table: commands,
    definitions: globalDefinitions,
    awaiting: undefined,
    isRest: false,
    takesRest: undefined,
    positionals: [],
    options: new Map(),
  };
  let name = "";
  for (const word of words) {
    if (place.isRest) continue;
    if (place.awaiting !== undefined) {
      place.options.set(name, word);
      place.awaiting = undefined;
    } else if (word === "--") {
      place.isRest = true;
    } else if (word.startsWith("-") && word !== "-") {
      const option = findOption(word, place.definitions);
      if (option === undefined) continue;
      name = option.name;
      if (
        option.definition.type !== "boolean" &&
        option.definition.optional === undefined &&
        option.value === undefined
      )
        place.awaiting = option.definition;
      else place.options.set(name, option.value ?? "");
    } else {
      await enter(place, word);
    }
  }
  return place;
}

/** Handles a word that is not an option: a command, or an argument of one. */
async function enter(place: Place, word: string): Promise<void> {
  const entry = place.table !== undefined && Object.hasOwn(place.table, word) ? place.table[word] : undefined;
  if (entry === undefined) {
    place.table = undefined;
    place.positionals.push(word);
    place.isRest = place.takesRest === "behind-place";
  } else if ("commands" in entry) {
    place.table = entry.commands;
    const fallback = entry.commands[entry.fallback ?? ""];
    if (fallback !== undefined && "load" in fallback) await take(place, fallback.load);
  } else {
    place.table = undefined;
    await take(place, entry.load);
  }
}

async function take(place: Place, load: Extract<Entry, { load: unknown }>["load"]): Promise<void> {
  const { definition, takesRest } = await load();
  place.definitions = { ...globalDefinitions, ...argumentsOf(definition) };
  place.takesRest = takesRest;
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

async function offer(place: Place, current: string, runtime: Runtime): Promise<string[]> {
  if (place.isRest) return [":files"];
  const inline = /^(--[^=]+=)(.*)$/s.exec(current);
  if (inline !== null && place.awaiting === undefined) {
    const definition = findOption(current, place.definitions)?.definition;
    const values = await offerValues(definition?.completes, inline[2] ?? "", place, runtime);
    return values.map((value) => (value.startsWith(":") ? value : `${inline[1]}${value}`));
  }
  if (place.awaiting !== undefined) return offerValues(place.awaiting.completes, current, place, runtime);
  if (current.startsWith("-")) return offerOptions(place, current);
  const names = Object.entries(place.table ?? {}).filter(([name]) => name.startsWith(current));
  if (names.length > 0) return names.map(([name, { summary }]) => `${name}\t${summary}`);
  if (place.table !== undefined && place.definitions === globalDefinitions) return [];
  return offerValues(nextPositional(place)?.completes, current, place, runtime);
}

function nextPositional({ definitions, positionals }: Place): ArgumentDefinition | undefined {
  const places = Object.values(definitions).filter(({ type }) => type === "positional");
  return places[positionals.length] ?? places.find(({ multiple }) => multiple === true);
}

function offerOptions({ definitions, options }: Place, current: string): string[] {
  return Object.entries(definitions).flatMap(([name, { type, multiple, description }]) => {
    const isSpent = options.has(name) && multiple !== true;
    const option = `--${name}`;
    return type === "positional" || isSpent || !option.startsWith(current)
      ? []
      : `${option}\t${description ?? ""}`;
  });
}

async function offerValues(
  completes: Completes | undefined,
  current: string,
  place: Place,
  runtime: Runtime,
): Promise<string[]> {
  if (completes === undefined) return [];
  if (completes === "file") return [":files"];
  if (completes === "named-file") return /[:=]/.test(current) ? [":named-files"] : [];
  if (completes === "directory") return [":directories"];
  const values = valuesOf(place);
  const names =
    typeof completes === "string"
      ? await findNames(completes, current, { runtime, globals: readGlobals(none, values), values })
      : completes;
  // A line end or a tab in a name would read as another candidate.
  return names.filter((name) => name.startsWith(current) && !/[\u0000-\u001f\u007f]/.test(name));
}

const none: Values = {
  names: [],
  flag: () => false,
  text: () => undefined,
  list: () => [],
  positionals: [],
  rest: undefined,
};

/** Returns what is typed already: it selects the service, the session and the Dockerfile. */
function valuesOf({ options, positionals }: Place): Values {
  return {
    ...none,
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
