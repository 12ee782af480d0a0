import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { defaultPlatform, parsePlatform } from "../bases/platform.ts";
import { interpretGlobal, startGlobals } from "../interpreter/interpret.ts";
import type { Arguments } from "../interpreter/scope.ts";

/** What FROM knows before a service is asked for its platform. An ARG that can't be declared is left out. */
export function staticGlobals(
  { globals: instructions, escape }: Pick<Dockerfile, "globals" | "escape">,
  buildArgs: ReadonlyMap<string, string>,
): Arguments {
  let globals = startGlobals(parsePlatform(defaultPlatform), buildArgs);
  for (const instruction of instructions) {
    try {
      globals = interpretGlobal(instruction, globals, { buildArgs, escape });
    } catch (error) {
      // The build says so when it gets there.
      if (!(error instanceof BoughError)) throw error;
    }
  }
  return globals;
}
