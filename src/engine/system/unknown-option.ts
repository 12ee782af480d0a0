import { realpathSync } from "node:fs";
import { basename } from "node:path";
import { BoughError } from "../../errors.ts";
import { type Environment, findOptionalProgram, type ProgramName, packageOf } from "./programs.ts";

/** Matches the first line of GNU's, util-linux's, BusyBox's and toybox's message. */
const message = /^(?:\S*\/)?([\w-]+): ((?:unrecognized|unknown|invalid|illegal) option.*)$/im;

/**
 * Returns an error that names the program in the way if a helper's error output says that it does not know an option, as
 * BusyBox's programs do: their names are those of the programs that the engine needs.
 */
export function explainUnknownOption(errorOutput: string, environment: Environment): BoughError | undefined {
  const [, program = "", reason] = message.exec(errorOutput) ?? [];
  const name = packageOf(program);
  if (name === undefined) return undefined;
  const path = findOptionalProgram(program as ProgramName, environment) ?? program;
  const maker = makerOf(path);
  return new BoughError(`${path}${maker} is not the ${program} that the embedded engine needs: ${reason}`, {
    hint: `Install the ${program} of ${name}, and put its directory before that of ${path} in PATH.`,
  });
}

/** Such a program is a link to one that has the code of many. */
function makerOf(path: string): string {
  try {
    const name = basename(realpathSync(path));
    return name === basename(path) ? "" : ` (${name})`;
  } catch {
    return "";
  }
}
