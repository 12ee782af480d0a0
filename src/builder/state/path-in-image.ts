import { posix } from "node:path";
import { BoughError } from "../../errors.ts";

/** PATH_MAX of Linux, without the NUL at the end (limits.h). */
const maxBytes = 4095;

/**
 * Returns the absolute path that a WORKDIR or a destination names.
 *
 * @throws BoughError for a path that is too long for Linux
 */
export function pathInImage(workdir: string, path: string): string {
  const resolved = posix.resolve(workdir, path);
  const bytes = Buffer.byteLength(resolved);
  if (bytes <= maxBytes) return resolved;
  throw new BoughError(
    `a path in the image is ${bytes} bytes long, but Linux allows at most ${maxBytes}: ${resolved.slice(0, 80)}...`,
    { kind: "usage" },
  );
}

/** Returns the parents of `path`, from the top down, without the root. */
export function parentDirectories(path: string): string[] {
  const directories: string[] = [];
  for (let end = path.indexOf("/", 1); end > 0; end = path.indexOf("/", end + 1))
    directories.push(path.slice(0, end));
  return directories;
}

/** Returns true if `directory` is `path` itself or a parent of it. */
export function isSameOrAbove(directory: string, path: string): boolean {
  return path === directory || directory === "/" || path.startsWith(`${directory}/`);
}
