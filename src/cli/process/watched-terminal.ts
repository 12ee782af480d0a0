import { isCi } from "../../terminal/color.ts";
import type { Output, Runtime } from "./runtime.ts";

/** Returns the terminal to show progress on; `undefined` if nobody watches it. */
export function watchedTerminal(
  { stderr, environment }: Pick<Runtime, "stderr" | "environment">,
  { quiet }: { quiet: boolean },
): Output | undefined {
  return stderr.isTerminal && !quiet && !isCi(environment.CI) ? stderr : undefined;
}
