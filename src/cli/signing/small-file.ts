/** Reads what options of signatures name: keys, tokens, roots. */
import { resolve } from "node:path";
import { usageError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

/** All of it is small. */
const maxBytes = 4 * 1024 * 1024;

/** Reads a file, or what a variable has: `env://NAME`. Throws a BoughError of kind `usage`, which begins with `given`. */
export async function readSmall(place: string, given: string, runtime: Runtime): Promise<string> {
  const { environment, isSecretVariable = () => true } = runtime;
  const variable = /^env:\/\/(.+)$/.exec(place)?.[1];
  if (variable === undefined) return (await readSmallFile(place, given, runtime)).toString();
  const value = isSecretVariable(variable) ? environment[variable] : undefined;
  if (value) return value;
  throw usageError(`${given}: the variable ${variable} is not set`);
}

export async function readSmallFile(
  place: string,
  given: string,
  { inputs, workingDirectory, signal }: Runtime,
): Promise<Buffer> {
  try {
    return await inputs.read(resolve(workingDirectory, place), { maxBytes, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw usageError(`${given} can't be read: ${reasonOf(error)}`);
  }
}
