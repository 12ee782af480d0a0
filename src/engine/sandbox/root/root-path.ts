import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { errorCode } from "../../../system-error.ts";

/** Where a path inside an image leads, with every link followed as the image itself would follow it. */
export interface ResolvedPath {
  /** Absolute path on this machine; below `root`, whatever the image's links say. */
  path: string;
  /** The same place as the image sees it: `/` or `/a/b`. */
  inside: string;
  /** `undefined`: nothing is there. */
  stats: Stats | undefined;
}

/** The path can't lead anywhere: its links go in a circle, or it is longer than any path. */
export class UnreachablePathError extends BoughError {
  override readonly name = "UnreachablePathError";
}

/** Where on this machine names below a root are; `undefined` where nothing is known of what will be there. */
export type Locate = (names: readonly string[]) => string | undefined;

/** Linux follows no more in one look-up. */
const maxLinks = 40;

/**
 * Follows `path` component by component with `root` as its `/`: neither `..` nor a link, absolute or not, leads out of
 * it. Components after the first missing one are taken as they are. With `followLast: false` a link at the very end is the
 * answer itself. `locate` says where something else than the root's own is seen. Nothing else may change the tree at the same
 * time.
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

/** Linux takes paths of 4096 bytes. */
const maxComponents = 2048;

/** Calls lstat(2); returns `undefined` also for what nothing can be at. */
export function lookUp(path: string | Buffer | undefined): Stats | undefined {
  if (path === undefined) return undefined;
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A file where a directory would have to be, or a name that nothing can have.
    if (["ENOTDIR", "ENAMETOOLONG"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
}

function splitPath(path: string): string[] {
  return path.split("/").filter((component) => component !== "" && component !== ".");
}
