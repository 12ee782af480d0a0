import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { usageError } from "./errors.ts";
import { errorCode } from "./system-error.ts";

/** Systems other than Linux have no O_NOATIME, and open files as usual. */
const { O_RDONLY, O_NOATIME = 0, O_NONBLOCK = 0 } = constants;

/**
 * Opens a file for reading and leaves its access time (atime) alone. Linux would set that at the first read after a change,
 * which takes ext4 longer than reading a small file. Returns the descriptor.
 *
 * @param flags further flags of open(2)
 */
export function openForReading(path: string | Buffer, flags: number): number {
  try {
    return openSync(path, O_RDONLY | O_NOATIME | flags);
  } catch (error) {
    // Only root and the file's owner may use O_NOATIME. Some network file systems allow it to nobody.
    if (errorCode(error) !== "EPERM") throw error;
    return openSync(path, O_RDONLY | flags);
  }
}

/** Decodes UTF-8 without replacement characters. Throws a BoughError of kind `usage` that names the first line that is not UTF-8. */
export function utf8Text(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  let line = 1;
  for (let [at, end] = [0, 0]; at < bytes.length; at = end + 1, line += 1) {
    end = bytes.indexOf(0x0a, at);
    if (end < 0 || !isUtf8(bytes.subarray(at, end))) break;
  }
  throw usageError(`line ${line} is not UTF-8 text`, "Save it as UTF-8.");
}

/**
 * Reads a file that others may have written or replaced: at most `maxBytes`, and neither a pipe nor a device, which could block its
 * reader or never end. Throws the error of a system call, or a BoughError of kind `usage`; neither needs to name the path.
 *
 * @param open opens the path without waiting for the writer of a pipe
 */
export function readRegularFile(
  path: string,
  maxBytes: number,
  open = (path: string) => openSync(path, O_RDONLY | O_NONBLOCK),
): Buffer {
  const descriptor = open(path);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw usageError("it is a directory");
    if (!stats.isFile()) throw usageError("it is not a regular file");
    if (stats.size > maxBytes) throw usageError(`it is larger than ${maxBytes} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns a file's text; "" if it can't be read. */
export function readOptional(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
