import { BoughError, messageOf } from "../errors.ts";
import { displayPath } from "./display-path.ts";

/** A failed file-system call as an error that names the path: `cannot read dir/file: permission denied`. */
export function fileError(action: string, path: string, error: unknown): BoughError {
  const code = errorCode(error);
  const reason = (code === undefined ? undefined : reasons[code]) ?? messageOf(error);
  return new BoughError(`cannot ${action} ${displayPath(path)}: ${reason}`, { cause: error });
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Whether a path could not be found because nothing has that name. */
export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG";
}

const reasons: Record<string, string> = {
  EACCES: "permission denied",
  EIO: "the disk reports an input/output error",
  EISDIR: "it is a directory",
  ELOOP: "it has become a symbolic link, or its links go in a circle",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "the name is too long",
  ENFILE: "too many files are open on this machine",
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  ENXIO: "it is not a regular file",
  EPERM: "operation not permitted",
  ESTALE: "the network file system has lost it",
};
