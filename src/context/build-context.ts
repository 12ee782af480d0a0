import { readdirSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { BoughError } from "../errors.ts";
import { displayPath } from "./file-system/display-path.ts";
import { fileError, isMissing } from "./file-system/file-error.ts";
import { localPath } from "./file-system/local-file-system.ts";

/** The directory that COPY and ADD take their sources from. */
export interface BuildContext {
  /** The path as the user gave it, for messages. */
  path: string;
  /** Absolute, links not resolved: the build session is named after it. */
  absolutePath: string;
  /** Absolute, all links resolved. */
  realPath: string;
  /** True if it was fetched from a git repository. */
  isRepository?: boolean;
}

/**
 * Opens a directory as the build context.
 *
 * @param path relative to `workingDirectory`, or absolute
 * @throws BoughError of kind `usage` if there is no such directory, or if it can't be read
 */
export async function openBuildContext(path: string, workingDirectory: string): Promise<BuildContext> {
  const absolutePath = resolve(workingDirectory, path);
  try {
    const realPath = localPath(realpathSync(absolutePath));
    if (!statSync(realPath).isDirectory()) {
      throw new BoughError(`the build context ${displayPath(path)} is not a directory`, {
        kind: "usage",
        hint: `CONTEXT is a file: did you mean --dockerfile ${displayPath(path)}?`,
      });
    }
    // access(2) would check the user who started the process, not the effective user.
    readdirSync(realPath);
    return { path, absolutePath, realPath };
  } catch (error) {
    if (error instanceof BoughError) throw error;
    if (isMissing(error)) {
      throw new BoughError(`the build context ${displayPath(path)} does not exist`, {
        kind: "usage",
        hint: "CONTEXT is the directory whose files COPY and ADD can copy; the current directory is `.`.",
        cause: error,
      });
    }
    throw new BoughError(fileError("read the build context", path, error).message, {
      kind: "usage",
      cause: error,
    });
  }
}
