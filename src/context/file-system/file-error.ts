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

/** Returns the error for a path of a build context that is no longer what it was when the build found it. */
export function changedError(contextPath: string, how: "changed" | "vanished", cause?: unknown): BoughError {
  return new BoughError(`${displayPath(contextPath)} ${how} while the build read it`, {
    hint: "Build again when nothing writes to the build context any more. If this command writes a log into the context, move the log or add it to .dockerignore.",
    cause,
  });
}

/** Returns the error for a failed call that names something that was there just before: it may have been replaced since. */
export function readError(action: string, contextPath: string, error: unknown): BoughError {
  if (isMissing(error)) return changedError(contextPath, "vanished", error);
  // EINVAL: it was a link. ENXIO: it is a pipe or a socket.
  const isOther = ["EINVAL", "ELOOP", "ENXIO"].includes(errorCode(error) ?? "");
  return isOther ? changedError(contextPath, "changed", error) : fileError(action, contextPath, error);
}
