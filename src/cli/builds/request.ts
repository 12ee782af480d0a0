import type { Invocation } from "../command-line/command.ts";
import { type OptionsOf, valuesOf } from "../command-line/request.ts";
import type { BakedTarget } from "./inputs.ts";
import type { inputDefinitions } from "./options/input-definitions.ts";
import type { resultDefinitions } from "./options/result-definitions.ts";

/** What is built, and how: the values of the options of `bough build`. */
export interface BuildRequest extends BakedTarget {
  context: string;
  options: OptionsOf<typeof inputDefinitions & typeof resultDefinitions>;
}

/** Returns the request with what a build needs beside it. */
export function invocationOf(
  { context, options, ...baked }: BuildRequest,
  surroundings: Omit<Invocation, "values">,
): Invocation & BakedTarget {
  return { ...surroundings, ...baked, values: valuesOf(options, [context]) };
}
