import type { Instruction } from "../dockerfile/instruction.ts";
import { referencesOf } from "../dockerfile/references.ts";
import { nearest } from "../suggest.ts";
import { isPlatformArgument } from "./platform.ts";
import type { Arguments } from "./state.ts";
import type { BuildWarning } from "./warnings.ts";

/** The names that an instruction's words can use. */
export interface Scope {
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** Of the image; undefined where they are not known. */
  inherited: ReadonlyMap<string, string> | undefined;
  /** Declared before the first FROM: of no use here until an ARG repeats them. */
  globals: Arguments;
}

/** Always set: where an image sets none, Docker and the engine do. */
const everywhere = "PATH";

/** Docker's check UndefinedVar: names that come to nothing, each once. */
export function undefinedVariables(
  instruction: Instruction,
  { env, args, inherited, globals }: Scope,
  escape: "\\" | "`",
): BuildWarning[] {
  const known = new Set([everywhere, ...env.keys(), ...args.keys(), ...(inherited?.keys() ?? [])]);
  return referencesOf(instruction, escape)
    .filter(({ name, isRequired }) => isRequired && !known.has(name))
    .map(({ name }) => {
      const advice =
        globals.has(name) || isPlatformArgument(name)
          ? `: declare it in this stage, by ARG ${name}`
          : suggest(name, [...known, ...globals.keys()], inherited !== undefined);
      return { rule: "UndefinedVar", message: `Usage of undefined variable '$${name}'${advice}` };
    });
}

function suggest(name: string, known: Iterable<string>, isImageKnown: boolean): string {
  const meant = nearest(name, known);
  if (meant !== undefined) return ` (did you mean $${meant}?)`;
  return isImageKnown ? ": it is empty" : ": it is empty unless the base image sets it";
}
