import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";

/** Writes a file that only its owner can read, completely or not at all. A link at the path stays a link. */
export function writePrivateFile(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const target = resolveLink(path);
    const temporary = join(dirname(target), `.${basename(target)}.${crypto.randomUUID().slice(0, 8)}`);
    try {
      const file = openSync(temporary, "wx", 0o600);
      try {
        writeSync(file, text);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, target);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  } catch (error) {
    throw new BoughError(`cannot write ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

function resolveLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
