import { statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { descriptorOf } from "./descriptors.ts";

/** True if two absolute paths name the same file, even through links, and even if it does not exist yet. */
export function isSameFile(one: string, other: string): boolean {
  const identity = identify(one);
  return identity !== undefined && identity === identify(other);
}

/** Returns a text that is the same for all paths of a file; `undefined` if the path's directory does not exist. */
function identify(path: string): string | undefined {
  const file = inodeOf(path);
  if (file !== undefined) return file;
  const directory = inodeOf(dirname(path));
  return directory === undefined ? undefined : `${directory}/${basename(path)}`;
}

function inodeOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** True if a path is one of the names of standard input: `/dev/stdin`, `/proc/self/fd/0`, ... */
export function isStandardInput(path: string): boolean {
  return descriptorOf(path) === 0 || isSameFile(path, "/dev/stdin");
}
