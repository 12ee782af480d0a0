/** What a command is asked to do, as data: each door makes it of its own words. */
import type { ParsedValues, Values } from "./arguments.ts";
import type { ArgumentDefinition, ArgumentDefinitions } from "./definitions.ts";

type OptionValue = boolean | string | readonly string[] | undefined;

/** The values of options by name, of the types that the definitions say. */
export type OptionsOf<Definitions extends ArgumentDefinitions> = {
  readonly [Name in keyof Definitions]?: ValueOf<Definitions[Name]> | undefined;
};

type ValueOf<Definition extends ArgumentDefinition> = Definition extends { type: "boolean" }
  ? boolean
  : Definition extends { multiple: true }
    ? readonly string[]
    : string;

/** Returns options for the functions that read them. An option without a value, or an empty list, is as if it were not given. */
export function valuesOf(
  options: Readonly<Record<string, OptionValue>>,
  positionals: readonly string[] = [],
  rest?: readonly string[],
): Values {
  const listOf = (name: string): readonly string[] => {
    const value = options[name];
    return typeof value === "string" ? [value] : typeof value === "object" ? value : [];
  };
  const isGiven = (name: string) => options[name] === true || listOf(name).length > 0;
  return {
    names: Object.keys(options).filter(isGiven),
    flag: (name) => options[name] === true,
    text: (name) => listOf(name).at(-1),
    list: listOf,
    positionals,
    rest,
  };
}

/** Returns the values of an option that takes `NAME=VALUE`. */
export function pairs(values: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(values).map(([name, value]) => `${name}=${value}`);
}

/** Adds options that were not given. Of an option that may be repeated, they come before those that were. */
export function withOptions(given: ParsedValues, options: Parameters<typeof valuesOf>[0]): ParsedValues {
  const own = valuesOf(options);
  return {
    ...given,
    names: [...new Set([...own.names, ...given.names])],
    flag: (name) => given.flag(name) || own.flag(name),
    text: (name) => given.text(name) ?? own.text(name),
    list: (name) => [...own.list(name), ...given.list(name)],
  };
}
