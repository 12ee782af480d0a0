import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { namesOf, PathResolution } from "../../../paths/path-resolution.ts";
import { errorCode } from "../../../system-error.ts";

/** The target of a path inside an image, with all links followed as the image itself would. */
export interface ResolvedPath {
  /** The absolute path on this machine, always below `root`. */
  path: string;
  /** The same path as seen in the image: `/` or `/a/b`. */
  inside: string;
  /** `undefined` if nothing exists there. */
  stats: Stats | undefined;
}

/** Thrown for a path that can't exist: its links form a loop, or it is too long. */
export class UnreachablePathError extends BoughError {
  override readonly name = "UnreachablePathError";
}

/** Returns the path on this machine for a path below a root, given as its names; `undefined` if its content is not known yet. */
export type Locate = (names: readonly string[]) => string | undefined;

/**
 * Follows `path` component by component with `root` as its `/`: neither `..` nor a link leads out of it. Components after the
 * first missing one are kept as they are. With `followLast: false`, a link at the very end is not followed. `locate` finds paths
 * that are mounted over the root. Nothing else may change the tree meanwhile.
 */
export function resolveInRoot(
  root: string,
  path: string,
  options: { followLast: boolean; locate?: Locate | undefined },
): ResolvedPath {
  const locate = options.locate ?? ((names) => join(root, ...names));
  const resolution = resolutionInImage(path, { maxLinks: linuxMaxLinks });
  const { reached } = resolution;
  for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
    const place = locate([...reached, name]);
    const isLink = lstatIfExists(place)?.isSymbolicLink() === true;
    if (isLink && (options.followLast || !resolution.isLast)) resolution.follow(readlinkSync(place ?? ""));
    else resolution.enter(name);
  }
  const place = locate(reached);
  return {
    path: place ?? join(root, ...reached),
    inside: `/${reached.join("/")}`,
    stats: lstatIfExists(place),
  };
}

/** The maximum number of links that the kernel follows for one path. */
const linuxMaxLinks = 40;
/** The maximum number of names in a path, as Linux accepts paths of up to 4096 bytes. */
const maxNames = 2048;

/** Starts to resolve a path in an image. Throws UnreachablePathError for one that can't exist. */
export function resolutionInImage(path: string, options: { maxLinks?: number } = {}): PathResolution {
  if (namesOf(path).length > maxNames) throw new UnreachablePathError("a path in the image is too long");
  return new PathResolution(path, {
    ...options,
    tooManyLinks: () => new UnreachablePathError(`${path}: too many symbolic links in the image`),
  });
}

/** Calls lstat(2). Returns `undefined` also for a path at which nothing can exist. */
export function lstatIfExists(path: string | Buffer | undefined): Stats | undefined {
  if (path === undefined) return undefined;
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // There is a file in place of a directory, or a name is too long.
    if (["ENOTDIR", "ENAMETOOLONG"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
}

/**
 * Resolves the working directory with all links of the image followed below `root`, so that runc follows none.
 *
 * Paths below `/proc` and `/dev` mean something else once the sandbox runs: `/proc/self/fd/7` is a directory of the machine that
 * runc up to 1.1.11 has open at that moment (CVE-2024-21626), and `/dev/fd/7` is a link to it.
 */
export function resolveWorkingDirectory(root: string, path: string, locate?: Locate): string {
  const { inside } = resolveInRoot(root, path, { followLast: true, locate });
  requireDirectories(inside, path, locate ?? ((names) => join(root, ...names)));
  // `/dev/shm` is allowed, since it starts empty, without links.
  const [, covering] = /^\/(proc|dev(?!\/shm(?:\/|$)))\//.exec(inside) ?? [];
  if (covering === undefined) return inside;
  const through = inside === path ? "" : `, which leads to ${inside}`;
  throw new BoughError(`the working directory cannot be ${path}${through}`, {
    hint: `Use a directory that is not below /${covering}, where the sandbox has its own files.`,
  });
}

/** Throws if a file is in place of a directory: the runtime only makes missing directories. */
function requireDirectories(inside: string, path: string, locate: Locate): void {
  const names = inside.split("/").slice(1);
  for (let depth = 1; depth <= names.length; depth++) {
    const stats = lstatIfExists(locate(names.slice(0, depth)));
    if (stats === undefined) return;
    if (!stats.isDirectory())
      throw new BoughError(
        `the working directory cannot be ${path}: /${names.slice(0, depth).join("/")} is not a directory`,
      );
  }
}
