import { isAbsolute, join, resolve } from "node:path";
import type { Runtime } from "./runtime.ts";

/**
 * bough's own state: `$BOUGH_HOME`, else `$XDG_STATE_HOME/bough`, else `~/.local/state/bough`, on Windows
 * `%LOCALAPPDATA%\\bough`.
 */
export function stateDirectory({ environment, platform }: Pick<Runtime, "environment" | "platform">): string {
  const { BOUGH_HOME, XDG_STATE_HOME, LOCALAPPDATA, HOME } = environment;
  if (BOUGH_HOME !== undefined && BOUGH_HOME !== "") return resolve(BOUGH_HOME);
  // The XDG rules: a relative path is invalid and passed over.
  if (XDG_STATE_HOME !== undefined && isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, "bough");
  if (platform === "win32" && LOCALAPPDATA) return join(LOCALAPPDATA, "bough");
  // Few have no HOME, and the module takes a fifth of what bough needs to look at its state.
  return join(HOME || process.getBuiltinModule("node:os").homedir(), ".local", "state", "bough");
}
