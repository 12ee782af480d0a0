import { renameSync } from "node:fs";
import { errorCode } from "../system-error.ts";

const attempts = 50;
const pauseMilliseconds = 20;

/** Renames a file, and replaces one at the new path. Windows refuses that while a program, such as a virus scanner, has that one open. */
export function renameOver(from: string, to: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      const isInUse = ["EACCES", "EBUSY", "EPERM"].includes(errorCode(error) ?? "");
      if (process.platform !== "win32" || !isInUse || attempt === attempts) throw error;
      Bun.sleepSync(pauseMilliseconds);
    }
  }
}
