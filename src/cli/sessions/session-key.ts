import type { Invocation } from "../command-line/command.ts";

/** Returns the session that a command works in: `-S`, else `BOUGH_SESSION`, else `default`. */
export function sessionKey({ globals, runtime }: Pick<Invocation, "globals" | "runtime">): string {
  return globals.session ?? (runtime.environment.BOUGH_SESSION || "default");
}
