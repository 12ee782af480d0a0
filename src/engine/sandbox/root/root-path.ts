import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { errorCode } from "../../../system-error.ts";

/** The target of a path inside an image, with all links followed as the image itself would. */
export interface ResolvedPath {
  /** Absolute path on this machine, always below `root`. */
  path: string;
  /** The same path as seen in the image: `/` or `/a/b`. */
  inside: string;
  /** `undefined`: nothing exists there. */
  stats: Stats | undefined;
}

/** Thrown for a path that can't exist: its links form a loop, or it is too long. */
export class UnreachablePathError extends BoughError {
  override readonly name = "UnreachablePathError";
}

/** Returns the path on this machine of a path below a root (as its names); `undefined` if its future content is unknown. */
export type Locate = (names: readonly string[]) => string | undefined;

/** Linux's maximum in one look-up. */
const maxLinks = 40;

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
  const waiting = splitPath(path);
  if (waiting.length > maxComponents) throw new UnreachablePathError(`a path in the image is too long`);
  const reached: string[] = [];
  let stats: Stats | undefined = lstatSync(root);
  let links = 0;
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    if (name === "..") {
      reached.pop();
      stats = lookUp(locate(reached));
      continue;
    }
    reached.push(name);
    stats = lookUp(locate(reached));
    if (!stats?.isSymbolicLink() || (waiting.length === 0 && !options.followLast)) continue;
    links += 1;
    if (links > maxLinks) throw new UnreachablePathError(`${path}: too many symbolic links in the image`);
    const target = readlinkSync(locate(reached) ?? "");
    reached.pop();
    if (target.startsWith("/")) reached.length = 0;
    waiting.unshift(...splitPath(target));
    stats = lookUp(locate(reached));
  }
  return { path: locate(reached) ?? join(root, ...reached), inside: `/${reached.join("/")}`, stats };
}

/** Linux accepts paths of up to 4096 bytes. */
const maxComponents = 2048;

/** Calls lstat(2). Returns `undefined` also for a path at which nothing can exist. */
export function lookUp(path: string | Buffer | undefined): Stats | undefined {
  if (path === undefined) return undefined;
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A file in place of a directory, or a name that is too long.
    if (["ENOTDIR", "ENAMETOOLONG"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
}

function splitPath(path: string): string[] {
  return path.split("/").filter((component) => component !== "" && component !== ".");
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
  // Shared memory starts empty, without links.
  const [, covering] = /^\/(proc|dev(?!\/shm(?:\/|$)))\//.exec(inside) ?? [];
  if (covering === undefined) return inside;
  const through = inside === path ? "" : `, which leads to ${inside}`;
  throw new BoughError(`the working directory cannot be ${path}${through}`, {
    hint: `Use a directory that is not below /${covering}, where the sandbox has its own files.`,
  });
}

/** Throws if a file is where a directory has to be: the runtime makes only missing ones. */
function requireDirectories(inside: string, path: string, locate: Locate): void {
  const names = inside.split("/").slice(1);
  for (let depth = 1; depth <= names.length; depth++) {
    const stats = lookUp(locate(names.slice(0, depth)));
    if (stats === undefined) return;
    if (!stats.isDirectory())
      throw new BoughError(
        `the working directory cannot be ${path}: /${names.slice(0, depth).join("/")} is not a directory`,
      );
  }
}
