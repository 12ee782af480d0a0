import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { defaultPlatform, parsePlatform } from "../bases/platform.ts";
import { startGlobals } from "../interpreter/interpret.ts";
import type { Arguments } from "../interpreter/scope.ts";
import { declareGlobals } from "../interpreter/settings.ts";

/** Returns the ARGs before the first FROM, without asking the service for its platform. Omits an ARG that can't be declared. */
export function staticGlobals(
  { globals: instructions, escape }: Pick<Dockerfile, "globals" | "escape">,
  buildArgs: ReadonlyMap<string, string>,
): Arguments {
  let globals = startGlobals(parsePlatform(defaultPlatform), buildArgs);
  for (const instruction of instructions) {
    try {
      globals = declareGlobals(instruction, globals, { buildArgs, escape });
    } catch (error) {
      // The build reports this when it reaches the ARG.
      if (!(error instanceof BoughError)) throw error;
    }
  }
  return globals;
}
