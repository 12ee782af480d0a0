import type { ArgInstruction, EnvInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { type Arguments, declareArgument, lookUp, type StageScope } from "./scope.ts";
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
  { buildArgs, escape }: Pick<World<StageScope>, "buildArgs" | "escape">,
): Arguments {
  let declared = globals;
  for (const { key, value } of declarations) {
    const expanded = value === undefined ? undefined : expandWord(value, lookUp({ args: declared }), escape);
    declared = declareArgument(declared, key, expanded, buildArgs, globals);
  }
  return declared;
}

/** Expands an ARG in a stage. Names and defaults all see the values from before the instruction. */
export function expandDeclarations(
  { declarations }: ArgInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): ArgInstruction["declarations"] {
  return declarations.map(({ key, value }) => ({
    key: expandWord(key, lookup, escape),
    value: value === undefined ? undefined : expandWord(value, lookup, escape),
  }));
}
