import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { pathWithin } from "./display-path.ts";

/**
 * Resolves the links of a file's path. Returns `undefined` if they lead out of its directory: like Docker, bough does not follow such
 * a link, since the author of a context could make it read other files of this machine. Throws the error of the system call if
 * there is no such file.
 */
export function locateBeside(path: string): string | undefined {
  const real = realpathSync(path);
  return pathWithin(realpathSync(dirname(path)), real) === undefined ? undefined : real;
}
