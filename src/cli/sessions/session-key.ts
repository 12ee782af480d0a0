import type { Invocation } from "../command-line/command.ts";

/** Which session a command works in: `-S`, else `BOUGH_SESSION`, else `default`. */
export function sessionKey({ globals, runtime }: Pick<Invocation, "globals" | "runtime">): string {
  return globals.session ?? (runtime.environment.BOUGH_SESSION || "default");
}
