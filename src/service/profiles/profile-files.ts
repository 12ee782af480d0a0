/** The profile files that the service's clients share. */
import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Environment } from "./profile.ts";
import type { ProfileFile } from "./profile-text.ts";

/** Returns `$CONTREE_HOME`, else `$XDG_CONFIG_HOME/contree`, else `~/.config/contree`. */
export function profileDirectory(environment: Environment): string {
  if (environment.CONTREE_HOME) return environment.CONTREE_HOME;
  const configured = environment.XDG_CONFIG_HOME;
  // The XDG specification: a relative path must be ignored.
  if (configured && isAbsolute(configured)) return join(configured, "contree");
  return join(homeDirectory(environment), ".config", "contree");
}

/** Reads `cli.ini`, then `auth.ini`, which overrides it; only those that exist. */
export function readProfileFiles(environment: Environment): ProfileFile[] {
  const directory = profileDirectory(environment);
  return ["cli.ini", "auth.ini"].flatMap((name) => {
    const path = join(directory, name);
    try {
      // Checked first, because a caught error takes a tenth of a millisecond.
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return [];
      return [{ path, text: readFileSync(path, "utf8") }];
    } catch (error) {
      const code = errorCode(error);
      if (code === "ENOENT" || code === "ENOTDIR") return [];
      throw new BoughError(`cannot read the profiles in ${path}: ${reasonOf(error)}`, {
        kind: "usage",
        cause: error,
      });
    }
  });
}
