import { runHelper } from "../../engine/system/helper.ts";
import { helperEnvironment } from "../../engine/system/programs.ts";
import type { Runtime } from "../process/runtime.ts";

/** The maximum duration of a trial. Normally each takes some milliseconds. */
export const maxTrialSeconds = 10;

/** Returns a program's name with its version, such as `runc 1.1.5`. */
export async function programVersion(
  name: string,
  path: string,
  { environment, clock, signal }: Runtime,
): Promise<string> {
  const options = { environment: helperEnvironment(environment), clock, signal, seconds: maxTrialSeconds };
  const { stdout } = await runHelper([path, "--version"], options);
  return [name, ...(/\d+\.\d[\w.+~-]*/.exec(stdout) ?? [])].join(" ");
}
