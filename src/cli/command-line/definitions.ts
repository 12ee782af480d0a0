import type { ArgDef } from "citty";
import { type OptionShape, type Token, tokenize } from "./tokens.ts";

/** A citty argument; `multiple` ones may be repeated, and keep every value. */
export type ArgumentDefinition = ArgDef & {
  multiple?: boolean;
  completes?: Completes;
  refusesEmpty?: boolean;
  /** Other names of the option, with their dashes, as other programs have them: `--workdir`. Help does not show them. */
  synonyms?: readonly string[];
  /** The letter that the option has on a command line of docker, whatever the letter means on one of bough. */
  dockerLetter?: string;
  /** See `OptionShape`. */
  yields?: OptionShape["yields"];
  /** What to write if this argument is missing, instead of a reference to the help. */
  missingHint?: string;
  /** See `OptionShape`. Without a value it is `true`. */
  optional?: OptionShape["optional"];
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

/** Defines `--timeout SEC`. */
export function timeoutOption(description: string): ArgumentDefinition & { type: "string" } {
  return { type: "string", alias: "t", valueHint: "SEC", description };
}

export function readTokens(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  others: Readonly<Record<string, OptionShape>> = {},
): Token[] {
  const options: Record<string, OptionShape> = {};
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === "positional") continue;
    const short = shortOf(definition);
    const type = definition.type === "boolean" ? "boolean" : "string";
    const pairs = aliasesOf(definition).filter((alias) => alias.length === 2);
    const { synonyms = [], yields, optional } = definition;
    options[name] = {
      type,
      ...(short === undefined ? {} : { short }),
      ...(pairs.length === 0 ? {} : { pairs }),
      ...(synonyms.length === 0 ? {} : { synonyms }),
      ...(yields === undefined ? {} : { yields }),
      ...(optional === undefined ? {} : { optional }),
    };
  }
  return tokenize(raw, { ...options, ...others });
}

export function shortOf(definition: ArgumentDefinition): string | undefined {
  return aliasesOf(definition).find((alias) => alias.length === 1);
}

/** Returns the aliases of an option: single letters, or pairs such as `it` for `-it`. */
export function aliasesOf(definition: ArgumentDefinition): readonly string[] {
  const alias = "alias" in definition ? (definition.alias ?? []) : [];
  return typeof alias === "string" ? [alias] : alias;
}

/** True for an option that the command does not define. */
export function isUndefined(
  token: Token,
  definitions: ArgumentDefinitions,
): token is Extract<Token, { kind: "option" }> {
  return token.kind === "option" && (definitions[token.name]?.type ?? "positional") === "positional";
}
