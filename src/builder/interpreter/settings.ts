import type { ArgInstruction, EnvInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { type Arguments, declareArgument, lookUp, type StageScope } from "../state/scope.ts";
import type { World } from "./world.ts";

/** Expands the pairs of an ENV. All of them see the values from before the instruction. */
export function expandPairs(
  { pairs }: EnvInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): { key: string; value: string }[] {
  return pairs.map(({ key, value }) => ({
    key: expandWord(key, lookup, escape),
    value: expandWord(value, lookup, escape),
  }));
}

/** Performs an ARG before the first FROM. It may declare several names; defaults may use earlier ones. Names are literal. */
export function declareGlobals(
  { declarations }: ArgInstruction,
  globals: Arguments,
  given: GivenArguments,
): Arguments {
  let declared = globals;
  for (const { key, value } of declarations) {
    const expanded = expandDefault(key, value, lookUp({ args: declared }), given);
    declared = declareArgument(declared, key, expanded, given.buildArgs, globals);
  }
  return declared;
}

/** Expands an ARG in a stage. Names and defaults all see the values from before the instruction. */
export function expandDeclarations(
  { declarations }: ArgInstruction,
  lookup: Lookup,
  given: GivenArguments,
): ArgInstruction["declarations"] {
  return declarations.map(({ key: name, value }) => {
    const key = expandWord(name, lookup, given.escape);
    return { key, value: expandDefault(key, value, lookup, given) };
  });
}

type GivenArguments = Pick<World<StageScope>, "buildArgs" | "escape">;

/** Returns a replaced default as it is written: `${NAME:?}` in it is no error, as in BuildKit. */
function expandDefault(
  key: string,
  value: string | undefined,
  lookup: Lookup,
  { buildArgs, escape }: GivenArguments,
): string | undefined {
  return value === undefined || buildArgs.has(key) ? value : expandWord(value, lookup, escape);
}
