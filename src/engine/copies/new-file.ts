import { lstatSync, rmSync } from "node:fs";
import { errorCode } from "../../system-error.ts";
import { copySmall, type StoredContent, smallBytes } from "../sandbox/root/verified-copy.ts";

/** Why a file is not in place: its bytes are not what was hashed, or a directory is where it was to come. */
export type CopyProblem = "changed" | "directory";

/** Puts small files in place one after the other, through one buffer. What stands there gives way, unless it is a directory. */
export function createNewFileCopier() {
  const buffer = Buffer.allocUnsafe(smallBytes + 1);
  return (content: StoredContent, target: string): CopyProblem | undefined => {
    try {
      return copySmall(content, target, buffer) ? undefined : "changed";
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
      // Seldom: something was put there for this very image before.
      if (!clearFile(target)) return "directory";
      return copySmall(content, target, buffer) ? undefined : "changed";
    }
  };
}

/** Removes what is at `target`. False: it is a directory, and stays. */
export function clearFile(target: string): boolean {
  const stats = lstatSync(target, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return false;
  if (stats !== undefined) rmSync(target);
  return true;
}
