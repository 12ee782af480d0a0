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

/** What an ARG finds when it is reached. */
export interface Declared {
  args: Arguments;
  /** Empty before the first FROM, as the next one. */
  env: ReadonlyMap<string, string>;
  inherited: ReadonlyMap<string, string> | undefined;
  /** Arguments from before the first FROM. */
  globals: Arguments;
}

/** ARG: one may declare several names; each default may use the ones before it. */
export function declareArguments(
  { declarations }: ArgInstruction,
  { args, env, inherited, globals }: Declared,
  supplied: ReadonlyMap<string, string>,
  escape: EscapeCharacter,
): Arguments {
  let declared = args;
  for (const { key, value } of declarations) {
    const lookup = lookUp({ env, args: declared, inherited });
    const expanded = value === undefined ? undefined : expandWord(value, lookup, escape);
    declared = declareArgument(declared, key, expanded, supplied, globals);
  }
  return declared;
}
