import { constants, openSync, readFileSync } from "node:fs";
import { errorCode } from "./system-error.ts";

/** Linux only; other systems open the file as usual. */
const { O_RDONLY, O_NOATIME = 0 } = constants;

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
    // Only root and the file's owner may leave it alone. Some network file systems let nobody.
    if (errorCode(error) !== "EPERM") throw error;
    return openSync(path, O_RDONLY | flags);
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
