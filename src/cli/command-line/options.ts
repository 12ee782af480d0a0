/** The options of a command as data: each is parsed once, by the parser that a table has for it. */
import type { Values } from "./arguments.ts";
import type { ArgumentDefinition, ArgumentDefinitions } from "./definitions.ts";

/** Parsers of options by name. That of an option that may be repeated gets all its values. */
export type OptionParsers<Definitions extends ArgumentDefinitions> = {
  readonly [Name in keyof Definitions]?: (given: GivenAs<Definitions[Name]>) => unknown;
};

/** The values of options by name, of the types that the parsers return. An option that was not given is absent. */
export type OptionsOf<Definitions extends ArgumentDefinitions, Parsers = unknown> = {
  readonly [Name in keyof Definitions]?:
    | (Name extends keyof Parsers ? Unchanging<ParsedBy<Parsers[Name]>> : GivenAs<Definitions[Name]>)
    | undefined;
};

type ParsedBy<Parser> = Parser extends (given: never) => infer Value ? Value : never;

type Unchanging<Value> = Value extends readonly (infer Element)[] ? readonly Element[] : Value;

type GivenAs<Definition extends ArgumentDefinition> = Definition extends { type: "boolean" }
  ? boolean
  : Definition extends { multiple: true }
    ? readonly string[]
    : string;

/** Parses the options of a command line. */
export function readOptions<
  const Definitions extends ArgumentDefinitions,
  const Parsers extends OptionParsers<Definitions>,
>(values: Values, definitions: Definitions, parsers: Parsers): OptionsOf<Definitions, Parsers> {
  const parserOf = (name: string) =>
    (parsers as Record<string, ((given: unknown) => unknown) | undefined>)[name];
  const options = Object.entries(definitions).flatMap(([name, { type, multiple }]) => {
    if (type === "boolean") {
      if (values.flag(name)) return [[name, true] as const];
      return values.off?.includes(name) === true ? [[name, false] as const] : [];
    }
    if (type === "positional" || values.list(name).length === 0) return [];
    const given = multiple === true ? values.list(name) : values.text(name);
    const parse = parserOf(name);
    return [[name, parse === undefined ? given : parse(given)] as const];
  });
  // The tables give each value its type.
  return Object.fromEntries(options) as OptionsOf<Definitions, Parsers>;
}
