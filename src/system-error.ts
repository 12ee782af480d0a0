import { messageOf } from "./errors.ts";

/** Returns the code of a failed system call, such as `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** True for an error of a full disk or quota, of a system call or of SQLite (whose shared memory is a file, too). */
export function isDiskFullError(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"].includes(errorCode(error) ?? "");
}

/** Returns the reason of a failed file system call, such as `permission denied`. */
export function reasonOf(error: unknown): string {
  const code = errorCode(error);
  return (code === undefined ? undefined : reasons[code]) ?? messageOf(error);
}

const reasons: Record<string, string> = {
  EACCES: "permission denied",
  EBUSY: "it is in use, or something is mounted there",
  EDQUOT: "the disk quota is used up",
  EIO: "the disk reports an input/output error",
  EISDIR: "it is a directory",
  ELOOP: "it is a symbolic link, or its links form a loop",
  EMFILE: "too many files are open",
  EMLINK: "too many links lead to one file",
  ENAMETOOLONG: "the name is too long",
  ENFILE: "too many files are open on this machine",
  ENOENT: "no such file or directory",
  ENOSPC: "no space is left on the disk",
  ENOTDIR: "a part of the path is not a directory",
  ENXIO: "it is not a regular file",
  EPERM: "operation not permitted",
  EROFS: "the file system is read-only",
  SQLITE_FULL: "no space is left on the disk",
  SQLITE_IOERR_SHMSIZE: "no space is left on the disk",
  ESTALE: "stale handle: the network file system no longer has it",
};
