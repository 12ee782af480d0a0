import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { openForReading } from "../../open-for-reading.ts";
import { creating } from "../system/owner-and-mode.ts";
import { bytesOf, type Path } from "../system/path.ts";

/** A smaller copy takes less time than handing it to another thread. */
const smallBytes = 256 * 1024;

const buffer = Buffer.allocUnsafe(smallBytes);

/** Copies bytes to a new file. A large one shares its blocks with the original if the file system can do that. */
export function copyContent(from: Path, to: Path, size: number): Promise<void> | undefined {
  if (size > smallBytes)
    return copyFile(bytesOf(from), bytesOf(to), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  const target = openSync(to, creating, 0o600);
  if (size === 0) {
    closeSync(target);
    return undefined;
  }
  let source: number | undefined;
  try {
    source = openForReading(from, constants.O_NOFOLLOW);
    for (;;) {
      const length = readSync(source, buffer, 0, smallBytes, null);
      if (length === 0) return undefined;
      for (let written = 0; written < length; )
        written += writeSync(target, buffer, written, length - written);
    }
  } finally {
    if (source !== undefined) closeSync(source);
    closeSync(target);
  }
}
