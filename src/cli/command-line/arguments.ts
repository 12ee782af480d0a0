import { CommandLineError, usageError } from "../../errors.ts";
import { type ArgumentDefinition, type ArgumentDefinitions, isUndefined, readTokens } from "./definitions.ts";
import { type ForeignOptions, noForeignOptions, refuseUnknown } from "./foreign-options.ts";

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
  /** The flags that were given as false. */
  off?: readonly string[];
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  /** Positional arguments in order, without the rest. */
  positionals: readonly string[];
  /** The words that the command takes verbatim; `undefined` if there are none. */
  rest: readonly string[] | undefined;
}

interface ParsingOptions {
  takesRest?: TakesRest | undefined;
  /** Options of other programs. */
  foreign?: ForeignOptions | undefined;
}

export interface ParsedValues extends Values {
  /** A sentence for each option that was ignored. */
  ignored: readonly string[];
}

function describeTwice(earlier: string | undefined, name: string): string {
  return earlier === undefined || earlier === name
    ? `${name} is given twice, but takes one value`
    : `${earlier} and ${name} are the same option, which takes one value`;
}

/**
 * Parses a command line strictly. citty's own parser keeps only the last of a repeated option, reads `--no-x` as `x: false`, and
 * silently accepts unknown flags and surplus arguments. `command` is the command's full name, for messages.
 */
export function parseArguments(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  command: string,
  { takesRest, foreign = noForeignOptions }: ParsingOptions = {},
): ParsedValues {
  const flags = new Map<string, true>();
  const off = new Set<string>();
  const texts = new Map<string, string[]>();
  /** How each option was written: -f or --dockerfile. */
  const spellings = new Map<string, string>();
  const positionals: string[] = [];
  const hint = `\`${command} -h\` shows how it is used.`;

  const { own, rest } = splitRest(raw, definitions, takesRest, foreign);
  const tokens = readTokens(own, definitions, foreign.shapes);
  refuseUnknown(tokens, definitions, command, foreign);
  const ignored = new Set<string>();

  for (const token of tokens) {
    if (token.kind === "positional") {
      positionals.push(token.value);
      continue;
    }
    if (token.kind !== "option") continue;
    const definition = definitions[token.name];
    if (definition === undefined) {
      ignored.add(`${token.rawName} is ignored: ${foreign.find(token.name, token.value)?.text}`);
      continue;
    }
    if (definition.type === "boolean") {
      const isSet = token.inlineValue === true ? parseBoolean(token.value) : true;
      if (isSet === undefined)
        throw new CommandLineError(
          `${command}: ${token.rawName} takes no value but true or false, not ${JSON.stringify(token.value)}`,
          hint,
        );
      if (isSet) flags.set(token.name, true);
      else flags.delete(token.name);
      if (isSet) off.delete(token.name);
      else off.add(token.name);
      continue;
    }
    const value = token.value ?? (definition.optional === undefined ? undefined : "true");
    // `--dockerfile "$FILE"` without FILE.
    const isEmpty = value === "" && definition.refusesEmpty === true;
    if (value === undefined || isEmpty)
      throw new CommandLineError(`${command}: ${token.rawName} needs a value${hintOf(definition)}`, hint);
    const earlier = texts.get(token.name) ?? [];
    // To take only the last would silently drop the others.
    if (earlier.length > 0 && definition.multiple !== true)
      throw usageError(`${command}: ${describeTwice(spellings.get(token.name), token.rawName)}`, hint);
    texts.set(token.name, [...earlier, value]);
    spellings.set(token.name, token.rawName);
  }

  const places = Object.values(definitions).filter((definition) => definition.type === "positional");
  const open = places.some((definition) => definition.multiple === true);
  const surplus = open ? undefined : positionals[places.length];
  if (surplus !== undefined) {
    const message = `${command}: unexpected argument ${JSON.stringify(surplus)}`;
    throw takesRest === undefined || takesRest === "hidden"
      ? usageError(message, hint)
      : usageError(message, `Give the command after --: ${command} -- ...`);
  }

  return {
    names: [...flags.keys(), ...texts.keys()],
    flag: (name) => flags.has(name),
    off: [...off],
    text: (name) => texts.get(name)?.at(-1),
    list: (name) => texts.get(name) ?? [],
    positionals,
    rest,
    ignored: [...ignored],
  };
}

/** True if an option is not defined, in as far as its place can be told. */
export function hasUndefinedOption(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  takesRest: TakesRest | undefined,
): boolean {
  return readTokens(splitRest(raw, definitions, takesRest).own, definitions).some((token) =>
    isUndefined(token, definitions),
  );
}

/** Parses `--flag=true` as docker does (Go, `strconv.ParseBool`). */
export function parseBoolean(text: string | undefined): boolean | undefined {
  if (/^(1|t|T|true|TRUE|True)$/.test(text ?? "")) return true;
  return /^(0|f|F|false|FALSE|False)$/.test(text ?? "") ? false : undefined;
}

function splitRest(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  takesRest: TakesRest | undefined,
  { shapes }: ForeignOptions = noForeignOptions,
): { own: readonly string[]; rest: readonly string[] | undefined } {
  // Elsewhere `--` only ends the options.
  if (takesRest === undefined) return { own: raw, rest: undefined };
  const separator = raw.indexOf("--");
  const marked = separator < 0 ? raw.length : separator;
  const place =
    takesRest === "behind-place"
      ? readTokens(raw.slice(0, marked), definitions, shapes).find(({ kind }) => kind === "positional")
      : undefined;
  const asksForHelp = place !== undefined && ["-h", "--help"].includes(raw[place.index + 1] ?? "");
  const end = place === undefined || asksForHelp ? marked : place.index + 1;
  const isMarked = end === separator;
  const words = raw.slice(isMarked ? end + 1 : end);
  const own = raw.slice(0, end);
  return { own, rest: isMarked || words.length > 0 ? words : undefined };
}

/** Returns the index of the command's name: of the first argument that is neither a global option nor the value of one. */
export function findCommand(raw: readonly string[], globals: ArgumentDefinitions): number {
  const token = readTokens(raw, globals).find(
    ({ kind }) => kind === "positional" || kind === "option-terminator",
  );
  return token?.kind === "positional" ? token.index : raw.length;
}

function hintOf(definition: ArgumentDefinition): string {
  return definition.valueHint === undefined ? "" : `: ${definition.valueHint}`;
}
