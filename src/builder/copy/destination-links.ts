import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import {
  type Destination,
  type DestinationSources,
  resolveDestination,
  type StagedTypes,
} from "./destination.ts";
import { parentDirectories } from "./made-directories.ts";

/** Linux's own limit for one path. */
const maxLinks = 40;

export interface DestinationPlace {
  workdir: string;
  staged: StagedTypes;
  isDirectoryInImage(path: string): Promise<boolean>;
  /** The target of a link in the image; `undefined` for anything else. */
  readLinkInImage(path: string): Promise<string | undefined>;
}

/**
 * As `resolveDestination`, of a link what it leads to: BuildKit writes through it. A directory in the image behind a link of
 * the image is found as the files are put in place.
 */
export async function resolveLinkedDestination(
  destination: string,
  sources: DestinationSources,
  { workdir, staged, isDirectoryInImage, readLinkInImage }: DestinationPlace,
): Promise<Destination> {
  const resolve = (path: string) => resolveDestination(path, workdir, staged, sources, isDirectoryInImage);
  const found = await resolve(destination);
  if (found.isDirectory && !leadsThroughStaged(found.path, staged)) return found;
  const path = await followLinks(found.path, staged, readLinkInImage);
  return path === found.path ? found : resolve(found.isDirectory ? `${path}/` : path);
}

/**
 * Where a destination leads that is a link, staged or in the image: followed inside the root, whether it is there or not.
 * `readLink` says the target of a link in the image.
 */
export async function followLinks(
  path: string,
  staged: StagedTypes,
  readLink: (path: string) => Promise<string | undefined>,
): Promise<string> {
  const targetOf = async (at: string) => {
    const entry = staged.get(at);
    if (entry !== undefined) return entry.target;
    return readLink(at);
  };
  // Links of the image on the way are followed as the file is put in place.
  if (!leadsThroughStaged(path, staged) && (await targetOf(path)) === undefined) return path;
  let pending = namesIn(path);
  let at = "/";
  let links = 0;
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    const next = posix.join(at, name);
    const target = await targetOf(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > maxLinks)
      throw new BoughError(`${path}: too many links`, {
        hint: "Symbolic links there lead to each other in a circle.",
      });
    if (target.startsWith("/")) at = "/";
    pending = [...namesIn(target), ...pending];
  }
  return at;
}

/** Returns whether `path` or a directory on the way to it is a staged link. */
function leadsThroughStaged(path: string, staged: StagedTypes): boolean {
  return [path, ...parentDirectories(path)].some((at) => staged.get(at)?.type === "symlink");
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
