import type { ArgInstruction, EnvInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { type Arguments, declareArgument, lookUp } from "./scope.ts";

/** ENV: its pairs. All of them see the values from before the instruction. */
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

/** ARG before the first FROM: one may declare several names; each default may use the ones before it, names are as written. */
export function declareGlobals(
  { declarations }: ArgInstruction,
  globals: Arguments,
  supplied: ReadonlyMap<string, string>,
  escape: EscapeCharacter,
): Arguments {
  let declared = globals;
  for (const { key, value } of declarations) {
    const expanded = value === undefined ? undefined : expandWord(value, lookUp({ args: declared }), escape);
    declared = declareArgument(declared, key, expanded, supplied, globals);
  }
  return declared;
}

/** ARG in a stage: names and defaults all see the values from before the instruction. */
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
