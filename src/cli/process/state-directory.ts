import { isAbsolute, join, resolve } from "node:path";
import { homeDirectory } from "../../home-directory.ts";
import type { Runtime } from "./runtime.ts";

/**
 * Returns bough's state directory: `$BOUGH_HOME`, else `$XDG_STATE_HOME/bough`, else `~/.local/state/bough`, on Windows
 * `%LOCALAPPDATA%\\bough`.
 */
export function stateDirectory({ environment, platform }: Pick<Runtime, "environment" | "platform">): string {
  const { BOUGH_HOME, XDG_STATE_HOME, LOCALAPPDATA } = environment;
  if (BOUGH_HOME !== undefined && BOUGH_HOME !== "") return resolve(BOUGH_HOME);
  // The XDG specification: a relative path is invalid and ignored.
  if (XDG_STATE_HOME !== undefined && isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, "bough");
  if (platform === "win32" && LOCALAPPDATA) return join(LOCALAPPDATA, "bough");
  return join(homeDirectory(environment), ".local", "state", "bough");
}
