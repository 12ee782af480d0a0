import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError } from "../../errors.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Runtime } from "./runtime.ts";

/** Returns the error for a file of an image that can't be written here. The path is shortened if it is long. */
export function cannotWrite(name: string, error: unknown): BoughError {
  if (error instanceof BoughError) return error;
  const tooLong = errorCode(error) === "ENAMETOOLONG";
  const reason = tooLong ? "its name or path is too long for this system" : reasonOf(error);
  return new BoughError(`cannot write ${displayPath(shortened(name))}: ${reason}`, {
    cause: error,
    hint: tooLong
      ? "Copy a subdirectory by itself, or write an archive with `bough cp PATH -` and unpack that."
      : undefined,
  });
}

const maxShown = 200;

/** Returns a long path without its middle. */
function shortened(path: string): string {
  if (path.length <= maxShown) return path;
  return `${path.slice(0, maxShown / 2)}...${path.slice(-maxShown / 2)}`;
}

/** Writes chunks to standard output as fast as its reader takes them. */
export async function writeChunks(
  chunks: AsyncIterable<Uint8Array>,
  { stdout, signal }: Pick<Runtime, "stdout" | "signal">,
): Promise<void> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    stdout.write(chunk);
    await stdout.flush();
  }
}
