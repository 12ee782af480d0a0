import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { pathWithin } from "./display-path.ts";

/**
 * Returns the path of a file without links; `undefined` if they lead out of the directory that has its name. As Docker does, nobody
 * follows such a link: who has written the files of a context could have other files of this machine read. Throws the error of the
 * system call if there is no such file.
 */
export function locateBeside(path: string): string | undefined {
  const real = realpathSync(path);
  return pathWithin(realpathSync(dirname(path)), real) === undefined ? undefined : real;
}
