import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";

/** Where a path inside an image leads, with every link followed as the image itself would follow it. */
export interface ResolvedPath {
  /** Absolute path on this machine; below `root`, whatever the image's links say. */
  path: string;
  /** The same place as the image sees it: `/` or `/a/b`. */
  inside: string;
  /** `undefined`: nothing is there. */
  stats: Stats | undefined;
}

/** As many as Linux follows in one look-up. */
const mostLinks = 40;

/**
 * Follows `path` component by component with `root` as its `/`: neither `..` nor a link, absolute or not, leads out of
 * it. Components after the first missing one are taken as they are. With `followLast: false` a link at the very end is the
 * answer itself. Nothing else may change the tree at the same time.
 */
export function resolveInRoot(root: string, path: string, options: { followLast: boolean }): ResolvedPath {
  const waiting = splitPath(path);
  const reached: string[] = [];
  let stats: Stats | undefined = lstatSync(root);
  let links = 0;
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    if (name === "..") {
      reached.pop();
      stats = lookUp(root, reached);
      continue;
    }
    reached.push(name);
    stats = lookUp(root, reached);
    if (!stats?.isSymbolicLink() || (waiting.length === 0 && !options.followLast)) continue;
    links += 1;
    if (links > mostLinks) throw new BoughError(`${path}: too many symbolic links in the image`);
    const target = readlinkSync(join(root, ...reached));
    reached.pop();
    if (target.startsWith("/")) reached.length = 0;
    waiting.unshift(...splitPath(target));
    stats = lookUp(root, reached);
  }
  return { path: join(root, ...reached), inside: `/${reached.join("/")}`, stats };
}

function lookUp(root: string, components: readonly string[]): Stats | undefined {
  try {
    return lstatSync(join(root, ...components), { throwIfNoEntry: false });
  } catch (error) {
    // A file where a directory would have to be.
    if ((error as { code?: unknown }).code === "ENOTDIR") return undefined;
    throw error;
  }
}

function splitPath(path: string): string[] {
  return path.split("/").filter((component) => component !== "" && component !== ".");
}
