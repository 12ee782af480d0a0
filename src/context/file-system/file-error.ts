import { BoughError } from "../../errors.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { displayPath } from "./display-path.ts";

/** Returns the error for a failed file-system call. It names the path: `cannot read dir/file: permission denied`. */
export function fileError(action: string, path: string, error: unknown): BoughError {
  return new BoughError(`cannot ${action} ${displayPath(path)}: ${reasonOf(error)}`, { cause: error });
}

/** Returns true if a path could not be found because nothing has that name. */
export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG";
}
