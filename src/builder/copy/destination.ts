import { posix } from "node:path";
import type { SourceMatch } from "../../context/sources/entry-list.ts";
import { BoughError } from "../../errors.ts";
import { PathResolution } from "../../paths/path-resolution.ts";
import { parentDirectories, pathInImage } from "../state/path-in-image.ts";
import { isStagedBelow } from "../state/staged.ts";

/** The destination of one COPY or ADD: a directory that the sources go into, or the path of a single file. */
export interface CopyDestination {
  /** Absolute and normalised. */
  path: string;
  isDirectory: boolean;
}

/** The types of staged entries by absolute path. `target`: a link's. */
export type StagedTypes = ReadonlyMap<string, { type: string; target?: string }>;

/** The sources, as far as the destination depends on them. */
export interface DestinationSources {
  count: number;
  /** True if a source turns a missing destination into a directory, which its contents go into. */
  makesDirectory: boolean;
}

export interface DestinationPlace {
  workdir: string;
  staged: StagedTypes;
  /** Called only if nothing else decides. */
  isDirectoryInImage(path: string): Promise<boolean>;
  /** The target of a link in the image; `undefined` for anything else. */
  readLinkInImage(path: string): Promise<string | undefined>;
}

/**
 * Returns the destination of a COPY or ADD. A link is followed, as BuildKit writes through it. A directory in the image behind a
 * link of the image is found when the files are put in place.
 */
export async function resolveDestination(
  destination: string,
  sources: DestinationSources,
  place: DestinationPlace,
): Promise<CopyDestination> {
  const found = await resolveWord(destination, sources, place);
  if (found.isDirectory && !leadsThroughStaged(found.path, place.staged)) return found;
  const path = await followLinks(found.path, place.staged, place.readLinkInImage);
  return path === found.path ? found : resolveWord(found.isDirectory ? `${path}/` : path, sources, place);
}

/**
 * Applies the Dockerfile reference's rules for `<dest>`: relative to WORKDIR; a directory if it ends in a slash, is `.`, or is
 * one already.
 */
async function resolveWord(
  destination: string,
  { count, makesDirectory }: DestinationSources,
  { workdir, staged, isDirectoryInImage }: DestinationPlace,
): Promise<CopyDestination> {
  const path = pathInImage(workdir, destination);
  const isDirectory =
    namesDirectory(destination) ||
    count === 0 ||
    makesDirectory ||
    path === "/" ||
    path === workdir ||
    isDirectoryWhenStaged(path, staged) ||
    (!staged.has(path) && (await isDirectoryInImage(path)));
  return { path, isDirectory };
}

/** Returns true for `dir/`, `.`, `..` and the like. */
export function namesDirectory(destination: string): boolean {
  return /(^|\/)\.{0,2}$/.test(destination);
}

/** Returns the absolute path in the image for an entry of a match. */
export function placeEntry(destination: CopyDestination, match: SourceMatch, relativePath: string): string {
  const { path, isDirectory } = destination;
  if (relativePath === "" || !(match.isDirectory || isDirectory)) return path;
  // Both are normalized, so `posix.join` is not needed.
  return path === "/" ? `/${relativePath}` : `${path}/${relativePath}`;
}

function isDirectoryWhenStaged(path: string, staged: StagedTypes): boolean {
  return staged.get(path)?.type === "directory" || isStagedBelow(staged, path);
}

/**
 * Returns the path that a destination leads to if it is a link, staged or in the image. Links are followed inside the root, even
 * if the target does not exist. `readLink`: returns the target of a link in the image.
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
  // Links of the image on the way are followed when the file is put in place.
  if (!leadsThroughStaged(path, staged) && (await targetOf(path)) === undefined) return path;
  const tooManyLinks = () =>
    new BoughError(`${path}: too many links`, { hint: "Symbolic links there form a loop." });
  const resolution = new PathResolution(path, { tooManyLinks });
  const { reached } = resolution;
  for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
    const target = await targetOf(posix.join("/", ...reached, name));
    if (target === undefined) resolution.enter(name);
    else resolution.follow(target);
  }
  return posix.join("/", ...reached);
}

/** Returns true if `path` or a directory on the way to it is a staged link. */
function leadsThroughStaged(path: string, staged: StagedTypes): boolean {
  return [path, ...parentDirectories(path)].some((at) => staged.get(at)?.type === "symlink");
}
