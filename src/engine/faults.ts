import { isDamaged } from "../database.ts";
import { BoughError, messageOf } from "../errors.ts";
import { meansDiskFull } from "../system-error.ts";

/** Returns an error's message for the client. The message for a full disk names `directory`. */
export function describeFault(error: unknown, directory: string): string {
  if (isDiskFull(error)) return `no space left on the disk that holds ${directory}`;
  // A program's message may already end with a full stop.
  if (error instanceof BoughError && error.hint !== undefined)
    return `${error.message.replace(/\.+$/, "")}. ${error.hint}`;
  return messageOf(error);
}

/** Returns the error of an engine's directory that can't be opened. */
export function describeUnusable(error: unknown, directory: string): BoughError {
  if (error instanceof BoughError) return error;
  const message = `the engine's directory ${directory} cannot be used: ${describeFault(error, directory)}`;
  return new BoughError(message, { hint: hintFor(error), cause: error });
}

function hintFor(error: unknown): string {
  if (isDamaged(error))
    return "Move the directory away: its images are lost, and can be imported and built again.";
  return isDiskFull(error)
    ? "Free some space there: `bough engine prune` removes what the engine does not need."
    : "Check its permissions and the disk's free space, or set BOUGH_HOME to another directory.";
}

export function isDiskFull(error: unknown): boolean {
  return meansDiskFull(error) || /no space left on device/i.test(messageOf(error));
}
