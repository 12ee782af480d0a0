import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { targetStageName } from "../bases/automatic-arguments.ts";
import { startGlobals } from "../interpreter/interpret.ts";
import { declareGlobals } from "../interpreter/settings.ts";
import { defaultPlatform, parsePlatform } from "../state/platform.ts";
import type { Arguments } from "../state/scope.ts";

/** Returns the ARGs before the first FROM, without asking the service for its platform. Omits an ARG that can't be declared. */
export function staticGlobals(
  dockerfile: Pick<Dockerfile, "globals" | "escape" | "stages">,
  { buildArgs, target }: { buildArgs: ReadonlyMap<string, string>; target: string | undefined },
): Arguments {
  const { globals: instructions, escape } = dockerfile;
  const platform = parsePlatform(defaultPlatform);
  let globals = startGlobals({ platform, stage: targetStageName(dockerfile, target) }, buildArgs);
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
