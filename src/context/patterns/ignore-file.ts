import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { fileError, isMissing } from "../file-system/file-error.ts";
import { type IgnoreRules, ignoreRules, parseIgnoreFile } from "./ignore.ts";

interface ReadIgnoreRulesOptions {
  /** The context directory. Messages name the ignore file in it with this path. */
  contextPath: string;
  /** `undefined` if there is no Dockerfile on disk. */
  dockerfilePath: string | undefined;
  /** Returns the actual place of the file with that name, if it exists; default: the name itself. Messages have the name. */
  locate?: ((path: string) => string | undefined) | undefined;
  /** True if the specification's list of excludes applies too. */
  defaultExcludes: boolean;
}

/**
 * Reads the ignore rules of a build: those of `<Dockerfile name>.dockerignore` beside the Dockerfile, else those of
 * `.dockerignore` in the context root, else none. https://docs.docker.com/build/concepts/context/#filename-and-location
 *
 * @throws BoughError if the file can't be read or has an invalid pattern
 */
export function readIgnoreRules(options: ReadIgnoreRulesOptions): IgnoreRules {
  for (const path of ignoreFileCandidates(options)) {
    const text = readText(path, options.locate === undefined ? path : options.locate(path));
    if (text !== undefined) return ignoreRules(parseIgnoreFile(text, path), options);
  }
  return ignoreRules([], options);
}

/** Returns the possible paths of the ignore file. The first that exists has the rules. */
export function ignoreFileCandidates({
  contextPath,
  dockerfilePath,
}: Pick<ReadIgnoreRulesOptions, "contextPath" | "dockerfilePath">): string[] {
  const ofContext = join(contextPath, ".dockerignore");
  return dockerfilePath === undefined
    ? [ofContext]
    : [normalize(`${dockerfilePath}.dockerignore`), ofContext];
}

/** Returns `undefined` if there is no such file. */
function readText(path: string, at: string | undefined): string | undefined {
  if (at === undefined) return undefined;
  let descriptor: number;
  try {
    // Non-blocking: opening a named pipe would otherwise hang until a process writes to it.
    descriptor = openSync(at, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError("read", path, error);
  }
  try {
    if (!fstatSync(descriptor).isFile())
      throw new BoughError(`cannot read ${displayPath(path)}: it is not a regular file`, { kind: "usage" });
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(descriptor));
  } catch (error) {
    if (error instanceof BoughError) throw error;
    if (error instanceof TypeError)
      throw new BoughError(`cannot read ${displayPath(path)}: it is not UTF-8 text`, {
        kind: "usage",
        hint: "Save it as UTF-8.",
        cause: error,
      });
    throw fileError("read", path, error);
  } finally {
    closeSync(descriptor);
  }
}
