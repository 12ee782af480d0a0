import { isDamaged } from "../database.ts";
import { BoughError, messageOf, withHint } from "../errors.ts";
import { type Message, wording } from "../messages/wording.ts";
import { findWriteError } from "../paths/write-probe.ts";
import { errorCode, isDiskFullError, reasonOf } from "../system-error.ts";
import type { Layout } from "./layout.ts";
import { failingDiskHint } from "./system/disk.ts";

/** The directory of an engine. */
type EngineDirectory = Pick<Layout, "directory" | "realDirectory">;

/** Returns an error's message for the client. The message for a full or failing disk names the directory. */
export function describeFault(error: unknown, place: EngineDirectory): string {
  const { directory } = place;
  if (isDiskFull(error)) {
    const quota = errorCode(error) === "EDQUOT" ? ": the quota is used up" : "";
    return `no space left on the disk that holds ${directory}${quota}`;
  }
  if (isDiskFailing(error, place))
    return `the disk that holds ${directory} can't be written: ${reasonOf(error)}. ${failingDiskHint}`;
  return error instanceof BoughError ? String(withHint(error)) : messageOf(error);
}

/** Returns the error for an engine's directory that can't be opened. */
export function unusableDirectoryError(error: unknown, directory: string): BoughError {
  if (error instanceof BoughError) return error;
  const place = { directory, realDirectory: directory };
  const fault = findDiskError(error, place);
  const message = `the engine's directory ${directory} cannot be used: ${describeFault(fault, place)}`;
  return new BoughError(message, { hint: hintFor(fault, place), cause: error });
}

export const freeSpaceHint = wording`Free some space there: ${{ command: "engine prune" }} removes what the engine does not need.`;

function hintFor(error: unknown, place: EngineDirectory): Message | undefined {
  // The message already says what to do, except for a read-only file system, which may be intended.
  if (isDiskFailing(error, place) && errorCode(error) !== "EROFS") return undefined;
  if (isDamaged(error))
    return "Move the directory away: its images are lost, and can be imported and built again.";
  return isDiskFull(error)
    ? freeSpaceHint
    : "Check its permissions and the disk's free space, or set BOUGH_HOME to another directory.";
}

/**
 * Returns the reason for SQLite's error on a disk that can't be written, as the error of a system call: SQLite does not tell a used
 * quota and a read-only file system from other errors of the disk.
 */
export function findDiskError(error: unknown, place: EngineDirectory): unknown {
  if (!/^SQLITE_(CANTOPEN|IOERR|READONLY)/.test(errorCode(error) ?? "")) return error;
  const cause = findWriteError(place.directory);
  return meansUnwritable(cause, place) ? cause : error;
}

/** Returns true for an error of the directory's disk that every write would get: it is full, read-only or failing. */
export function meansUnwritable(error: unknown, place: EngineDirectory): boolean {
  return isDiskFull(error) || isDiskFailing(error, place);
}

function isDiskFailing(error: unknown, place: EngineDirectory): boolean {
  const code = errorCode(error) ?? "";
  return (
    code === "EROFS" || code.startsWith("SQLITE_IOERR") || (code === "EIO" && concernsDisk(error, place))
  );
}

/** Returns true for an error of a write, or of a path in the directory; false for a file on another disk that can't be read. */
function concernsDisk(error: unknown, { directory, realDirectory }: EngineDirectory): boolean {
  const { syscall, path } = error as { syscall?: unknown; path?: unknown };
  const isInside =
    typeof path === "string" && [directory, realDirectory].some((own) => path.startsWith(`${own}/`));
  return isInside || ["write", "fsync", "fdatasync"].includes(String(syscall));
}

/** skopeo exits with 1 for every failure and removes what it wrote: only its message, which has the system's, tells a full disk. */
export function isDiskFull(error: unknown): boolean {
  return isDiskFullError(error) || /no space left on device/i.test(messageOf(error));
}
