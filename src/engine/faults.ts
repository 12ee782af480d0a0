import { BoughError, messageOf } from "../errors.ts";
import { errorCode } from "../system-error.ts";

/** Returns an error's message for the client. The message for a full disk names `directory`. */
export function describeFault(error: unknown, directory: string): string {
  if (isDiskFull(error)) return `no space left on the disk that holds ${directory}`;
  // A program's message may already end with a full stop.
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
