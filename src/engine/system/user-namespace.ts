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

/** Whether the group exists in this process's user namespace: that of a single user may have only the group 0. */
export function hasGroup(group: number): boolean {
  try {
    return isMapped(group, readFileSync("/proc/self/gid_map", "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return true;
    throw error;
  }
}

/** `map`: lines of the first id inside the namespace, the first one outside, and their number. */
function isMapped(id: number, map: string): boolean {
  return map.split("\n").some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return id >= first && id < first + count;
  });
}
