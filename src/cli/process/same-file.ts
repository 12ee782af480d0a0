import { statSync } from "node:fs";
import { basename, dirname } from "node:path";

/** Returns whether two absolute paths mean one file, however they are spelled, and also where it has yet to be made. */
export function isSameFile(one: string, other: string): boolean {
  const identity = identify(one);
  return identity !== undefined && identity === identify(other);
}

/** `undefined` where no file can be. */
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

/** Returns whether a path is one of the names of standard input: `/dev/stdin`, `/proc/self/fd/0`, ... */
export function isStandardInput(path: string): boolean {
  return isSameFile(path, "/dev/stdin");
}
