import { CommandLineError, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { type ArgumentDefinition, type ArgumentDefinitions, isUndefined, readTokens } from "./definitions.ts";
import { type ForeignOptions, noForeignOptions, refuseUnknown } from "./foreign-options.ts";
import type { Token } from "./tokens.ts";

/**
 * The words that a command takes verbatim. `marked`: those after `--`. `behind-place`: also those after its one positional
 * argument, as in `docker run IMAGE COMMAND`. `hidden`: those after `--`, for bough's own scripts; help does not show it.
 */
export type TrailingCommand = "marked" | "behind-place" | "hidden";

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

/** Those of a command line without arguments. */
export const noValues: Values = {
  names: [],
  flag: () => false,
  text: () => undefined,
  list: () => [],
  positionals: [],
  rest: undefined,
};

interface ParsingOptions {
  trailingCommand?: TrailingCommand | undefined;
  /** Options of other programs. */
  foreign?: ForeignOptions | undefined;
}

export interface ParsedValues extends Values {
  /** A sentence for each option that was ignored. */
  ignored: readonly string[];
}

/**
 * Parses a command line strictly. citty's own parser keeps only the last of a repeated option, reads `--no-x` as `x: false`, and
 * silently accepts unknown flags and surplus arguments. `command` is the command's full name, for messages.
 */
export function parseArguments(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  command: string,
  { trailingCommand, foreign = noForeignOptions }: ParsingOptions = {},
): ParsedValues {
  const { own, rest } = splitRest(raw, definitions, trailingCommand, foreign);
  const tokens = readTokens(own, definitions, foreign.shapes);
  refuseUnknown(tokens, definitions, command, foreign);
  const given = collectOptions(command);
  const ignored = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const definition = definitions[token.name];
    if (definition === undefined)
      ignored.add(`${token.rawName} is ignored: ${foreign.find(token.name, token.value)?.text}`);
    else if (definition.type === "boolean") given.addFlag(token);
    else given.addText(token, definition);
  }
  const positionals = tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : []));
  requirePlaces(positionals, definitions, command, trailingCommand);
  const { flags, off, texts } = given;
  return {
    names: [...flags, ...texts.keys()],
    flag: (name) => flags.has(name),
    off: [...off],
    text: (name) => texts.get(name)?.at(-1),
    list: (name) => texts.get(name) ?? [],
    positionals,
    rest,
    ignored: [...ignored],
  };
}

type OptionToken = Extract<Token, { kind: "option" }>;

function collectOptions(command: string) {
  const flags = new Set<string>();
  const off = new Set<string>();
  const texts = new Map<string, string[]>();
  /** How each option was written: -f or --dockerfile. */
  const spellings = new Map<string, string>();
  const hint = usageHint(command);
  return {
    ...{ flags, off, texts },
    addFlag({ name, rawName, value, inlineValue }: OptionToken): void {
      const isSet = inlineValue === true ? parseGoBoolean(value) : true;
      if (isSet === undefined)
        throw new CommandLineError(
          `${command}: ${rawName} takes no value but true or false, not ${JSON.stringify(value)}`,
          hint,
        );
      (isSet ? flags : off).add(name);
      (isSet ? off : flags).delete(name);
    },
    addText({ name, rawName, value: text }: OptionToken, definition: ArgumentDefinition): void {
      const value = text ?? (definition.optional === undefined ? undefined : "true");
      // `--dockerfile "$FILE"` without FILE.
      const isEmpty = value === "" && definition.refusesEmpty === true;
      if (value === undefined || isEmpty)
        throw new CommandLineError(`${command}: ${rawName} needs a value${hintOf(definition)}`, hint);
      const earlier = texts.get(name) ?? [];
      // To take only the last would silently drop the others.
      if (earlier.length > 0 && definition.multiple !== true)
        throw usageError(`${command}: ${describeTwice(spellings.get(name), rawName)}`, hint);
      texts.set(name, [...earlier, value]);
      spellings.set(name, rawName);
    },
  };
}

/** Throws if there are more positional arguments than places for them. */
function requirePlaces(
  positionals: readonly string[],
  definitions: ArgumentDefinitions,
  command: string,
  trailingCommand: TrailingCommand | undefined,
): void {
  const places = Object.values(definitions).filter((definition) => definition.type === "positional");
  const surplus = positionals[places.length];
  if (surplus === undefined || places.some((definition) => definition.multiple === true)) return;
  const message = `${command}: unexpected argument ${JSON.stringify(surplus)}`;
  throw trailingCommand === undefined || trailingCommand === "hidden"
    ? usageError(message, usageHint(command))
    : usageError(message, `Give the command after --: ${command} -- ...`);
}

function usageHint(command: string): string {
  return `\`${command} -h\` shows how it is used.`;
}

function describeTwice(earlier: string | undefined, name: string): string {
  return earlier === undefined || earlier === name
    ? `${name} is given twice, but takes one value`
    : `${earlier} and ${name} are the same option, which takes one value`;
}

/** True if an option is not defined, in as far as its place can be told. */
export function hasUndefinedOption(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  trailingCommand: TrailingCommand | undefined,
): boolean {
  return readTokens(splitRest(raw, definitions, trailingCommand).own, definitions).some((token) =>
    isUndefined(token, definitions),
  );
}

function splitRest(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  trailingCommand: TrailingCommand | undefined,
  { shapes }: ForeignOptions = noForeignOptions,
): { own: readonly string[]; rest: readonly string[] | undefined } {
  // Elsewhere `--` only ends the options.
  if (trailingCommand === undefined) return { own: raw, rest: undefined };
  const separator = raw.indexOf("--");
  const marked = separator < 0 ? raw.length : separator;
  const place =
    trailingCommand === "behind-place"
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
