import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** bough's own state: `$BOUGH_HOME`, else `$XDG_STATE_HOME/bough`, else `~/.local/state/bough`. */
export function stateDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { BOUGH_HOME, XDG_STATE_HOME, HOME } = environment;
  if (BOUGH_HOME !== undefined && BOUGH_HOME !== "") return resolve(BOUGH_HOME);
  // The XDG rules: a relative path is invalid and passed over.
  if (XDG_STATE_HOME !== undefined && isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, "bough");
  return join(HOME ?? homedir(), ".local", "state", "bough");
}
