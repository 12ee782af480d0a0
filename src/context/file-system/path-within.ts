import { isAbsolute, relative, sep } from "node:path";

/** Returns a path relative to a directory, with slashes as in a Dockerfile; `undefined` if it is outside. */
export function pathWithin(directory: string, path: string): string | undefined {
  const within = relative(directory, path).replaceAll(sep, "/");
  return within === ".." || within.startsWith("../") || isAbsolute(within) ? undefined : within;
}
