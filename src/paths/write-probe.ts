import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Bytes, more than a full disk leaves to root. */
const probeSize = 64 * 1024;

/** Returns the error of writing a file to the directory; `undefined` if it can be written. The file is removed. */
export function findWriteError(directory: string): unknown {
  const path = join(directory, crypto.randomUUID());
  try {
    try {
      writeFileSync(path, Buffer.alloc(probeSize), { flag: "wx", flush: true });
    } finally {
      if (existsSync(path)) rmSync(path);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}
