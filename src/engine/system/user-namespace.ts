import { readFileSync } from "node:fs";
import { errorCode } from "../../system-error.ts";

/** The initial namespace maps all ids to themselves. A kernel without user namespaces has no such file. */
export function isInUserNamespace(): boolean {
  try {
    return !/^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}
