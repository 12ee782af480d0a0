import type { ArgDef } from "citty";
import { usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { type OptionShape, type Token, tokenize } from "./tokens.ts";

/** A citty argument; `multiple` ones may be repeated, and keep every value. */
export type ArgumentDefinition = ArgDef & {
  multiple?: boolean;
  completes?: Completes;
  refusesEmpty?: boolean;
};
/** The shell completions of an argument: these words, or all names of a kind. `named-file` is one as in `oci:FILE` or `src=FILE`. */
export type Completes = readonly string[] | CompletedKind;
export type CompletedKind =
  | "image"
  | "tag"
  | "image-path"
  | "session"
  | "branch"
  | "profile"
  | "operation"
  | "running-operation"
  | "scope"
  | "stage"
  | "file"
  | "named-file"
  | "directory";
export type ArgumentDefinitions = Record<string, ArgumentDefinition>;

/**
 * The words that a command takes verbatim. `marked`: those after `--`. `behind-place`: also those after its one positional
 * argument, as in `docker run IMAGE COMMAND`. `hidden`: those after `--`, for bough's own scripts; help does not show it.
 */
export type TakesRest = "marked" | "behind-place" | "hidden";

/** The arguments of a command line, checked against their definitions. */
export interface Values {
  /** The options that were given. */
  names: readonly string[];
  flag(name: string): boolean;
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  /** Positional arguments in order, without the rest. */
  positionals: readonly string[];
  /** The words that the command takes verbatim; `undefined` if there are none. */
  rest: readonly string[] | undefined;
}

interface ParsingOptions {
  takesRest?: TakesRest | undefined;
  /** Hints on what to use instead of options of other programs, by option, such as `--file`. */
  foreignOptions?: Readonly<Record<string, string>> | undefined;
}

/**
 * Parses a command line strictly. citty's own parser keeps only the last of a repeated option, reads `--no-x` as `x: false`, and
 * silently accepts unknown flags and surplus arguments. `command` is the command's full name, for messages.
 */
export function parseArguments(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  command: string,
  { takesRest, foreignOptions = {} }: ParsingOptions = {},
): Values {
  const flags = new Map<string, true>();
  const texts = new Map<string, string[]>();
  const positionals: string[] = [];
  const usage = (message: string, hint = `\`${command} -h\` shows how it is used.`) =>
    usageError(message, hint);

  const { own, rest } = splitRest(raw, definitions, takesRest);
  const [first = ""] = rest?.words ?? [];
  if (rest?.isMarked === false && first.startsWith("-")) {
    throw usage(
      `${command}: ${first} is given where the command is expected`,
      `Options go before ${own.at(-1)}. To run ${own.at(-1)} as a command, write: ${command} -- ${own.at(-1)} ...`,
    );
  }

  for (const token of readTokens(own, definitions)) {
    if (token.kind === "positional") {
      positionals.push(token.value);
      continue;
    }
    if (token.kind !== "option") continue;
    const definition = definitions[token.name];
    if (definition === undefined || definition.type === "positional") {
      if (takesRest && positionals.length > 0) break;
      throw usage(
        `${command}: unknown option ${token.rawName}`,
        foreignOptions[token.rawName] ?? suggestion(token.rawName, definitions, command),
      );
    }
    if (definition.type === "boolean") {
      const isSet = token.inlineValue === true ? parseBoolean(token.value) : true;
      if (isSet === undefined)
        throw usage(
          `${command}: ${token.rawName} takes no value but true or false, not ${JSON.stringify(token.value)}`,
        );
      if (isSet) flags.set(token.name, true);
      else flags.delete(token.name);
      continue;
    }
    // `--dockerfile "$FILE"` without FILE.
    const isEmpty = token.value === "" && definition.refusesEmpty === true;
    if (token.value === undefined || isEmpty)
      throw usage(`${command}: ${token.rawName} needs a value${hintOf(definition)}`);
    const earlier = texts.get(token.name) ?? [];
    // To take only the last would silently drop the others.
    if (earlier.length > 0 && definition.multiple !== true)
      throw usage(`${command}: ${token.rawName} is given twice, but takes one value`);
    texts.set(token.name, [...earlier, token.value]);
  }

  const places = Object.values(definitions).filter((definition) => definition.type === "positional");
  const open = places.some((definition) => definition.multiple === true);
  const surplus = open ? undefined : positionals[places.length];
  if (surplus !== undefined) {
    const message = `${command}: unexpected argument ${JSON.stringify(surplus)}`;
    throw takesRest === undefined || takesRest === "hidden"
      ? usage(message)
      : usage(message, `Give the command after --: ${command} -- ...`);
  }

  return {
    names: [...flags.keys(), ...texts.keys()],
    flag: (name) => flags.has(name),
    text: (name) => texts.get(name)?.at(-1),
    list: (name) => texts.get(name) ?? [],
    positionals,
    rest: rest?.words,
  };
}

/** Parses `--flag=true` as docker does (Go, `strconv.ParseBool`). */
function parseBoolean(text: string | undefined): boolean | undefined {
  if (/^(1|t|T|true|TRUE|True)$/.test(text ?? "")) return true;
  return /^(0|f|F|false|FALSE|False)$/.test(text ?? "") ? false : undefined;
}

interface Rest {
  words: readonly string[];
  /** True if `--` precedes it. */
  isMarked: boolean;
}

function splitRest(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  takesRest: TakesRest | undefined,
): { own: readonly string[]; rest: Rest | undefined } {
  const separator = raw.indexOf("--");
  const marked = separator < 0 ? raw.length : separator;
  const place =
    takesRest === "behind-place"
      ? readTokens(raw.slice(0, marked), definitions).find(({ kind }) => kind === "positional")
      : undefined;
  const asksForHelp = place !== undefined && ["-h", "--help"].includes(raw[place.index + 1] ?? "");
  const end = place === undefined || asksForHelp ? marked : place.index + 1;
  const isMarked = end === separator;
  const words = raw.slice(isMarked ? end + 1 : end);
  const own = raw.slice(0, end);
  return { own, rest: isMarked || words.length > 0 ? { words, isMarked } : undefined };
}

/** Returns the index of the command's name: of the first argument that is neither a global option nor the value of one. */
export function findCommand(raw: readonly string[], globals: ArgumentDefinitions): number {
  const token = readTokens(raw, globals).find(
    ({ kind }) => kind === "positional" || kind === "option-terminator",
  );
  return token?.kind === "positional" ? token.index : raw.length;
}

/** Defines `--timeout SEC`. */
export function timeoutOption(description: string): ArgumentDefinition {
  return { type: "string", alias: "t", valueHint: "SEC", description };
}

export function readTokens(raw: readonly string[], definitions: ArgumentDefinitions): Token[] {
  const options: Record<string, OptionShape> = {};
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === "positional") continue;
    const short = shortOf(definition);
    const type = definition.type === "boolean" ? "boolean" : "string";
    const pairs = aliasesOf(definition).filter((alias) => alias.length === 2);
    options[name] = {
      type,
      ...(short === undefined ? {} : { short }),
      ...(pairs.length === 0 ? {} : { pairs }),
    };
  }
  return tokenize(raw, options);
}

export function shortOf(definition: ArgumentDefinition): string | undefined {
  return aliasesOf(definition).find((alias) => alias.length === 1);
}

/** Returns the aliases of an option: single letters, or pairs such as `it` for `-it`. */
export function aliasesOf(definition: ArgumentDefinition): readonly string[] {
  const alias = "alias" in definition ? (definition.alias ?? []) : [];
  return typeof alias === "string" ? [alias] : alias;
}

function hintOf(definition: ArgumentDefinition): string {
  return definition.valueHint === undefined ? "" : `: ${definition.valueHint}`;
}

function suggestion(given: string, definitions: ArgumentDefinitions, command: string): string {
  if (command === "bough" && /^-v$/i.test(given)) return "--version prints the version.";
  const names = Object.entries(definitions).flatMap(([name, { type }]) =>
    type === "positional" ? [] : [`--${name}`],
  );
  const name = nearest(given, names);
  if (name !== undefined) return `Did you mean ${name}?`;
  return command === "bough"
    ? "A command's own options go after its name."
    : `\`${command} -h\` lists the options.`;
}
