import { BoughError, messageOf } from "../errors.ts";
import { errorCode } from "../system-error.ts";

/** What went wrong, in words for the client; a full disk is named by the directory that it holds. */
export function describeFault(error: unknown, directory: string): string {
  if (isDiskFull(error)) return `no space left on the disk that holds ${directory}`;
  // What a program has said may be a whole sentence.
  if (error instanceof BoughError && error.hint !== undefined)
    return `${error.message.replace(/\.+$/, "")}. ${error.hint}`;
  return messageOf(error);
}

export function isDiskFull(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code === "ENOSPC" ||
    code === "EDQUOT" ||
    code === "SQLITE_FULL" ||
    /no space left on device/i.test(messageOf(error))
  );
}
