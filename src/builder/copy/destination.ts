import { posix } from "node:path";
import type { SourceMatch } from "../../context/sources/source-match.ts";
import { BoughError } from "../../errors.ts";
import { pathInImage } from "../interpreter/path-in-image.ts";
import { isStagedBelow } from "../staging/add-staged.ts";
import { parentDirectories } from "./made-directories.ts";

/** The place of the sources of one COPY or ADD: a directory that they go into, or exactly the path of a single file. */
export interface Destination {
  /** Absolute and normalised. */
  path: string;
  isDirectory: boolean;
}

/** What is staged, by absolute path, as far as it matters here. `target`: of a link. */
export type StagedTypes = ReadonlyMap<string, { type: string; target?: string }>;

/** What a destination is to take. */
export interface DestinationSources {
  count: number;
  /** One of them makes a directory of a destination that is not there: its contents go into it. */
  makesDirectory: boolean;
}

export interface DestinationPlace {
  workdir: string;
  staged: StagedTypes;
  /** Asked only where nothing else decides. */
  isDirectoryInImage(path: string): Promise<boolean>;
  /** The target of a link in the image; `undefined` for anything else. */
  readLinkInImage(path: string): Promise<string | undefined>;
}

/** Linux's own limit for one path. */
const maxLinks = 40;

/**
 * Where a COPY or ADD goes; of a link what it leads to: BuildKit writes through it. A directory in the image behind a link of the
 * image is found as the files are put in place.
 */
export async function resolveDestination(
  destination: string,
  sources: DestinationSources,
  place: DestinationPlace,
): Promise<Destination> {
  const found = await resolveWord(destination, sources, place);
  if (found.isDirectory && !leadsThroughStaged(found.path, place.staged)) return found;
  const path = await followLinks(found.path, place.staged, place.readLinkInImage);
  return path === found.path ? found : resolveWord(found.isDirectory ? `${path}/` : path, sources, place);
}

/**
 * The Dockerfile reference's rules for `<dest>`: relative to WORKDIR; a directory where it ends in a slash, is `.`, or is
 * one already.
 */
async function resolveWord(
  destination: string,
  { count, makesDirectory }: DestinationSources,
  { workdir, staged, isDirectoryInImage }: DestinationPlace,
): Promise<Destination> {
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

/** `dir/`, `.`, `..` and their kind. */
export function namesDirectory(destination: string): boolean {
  return /(^|\/)\.{0,2}$/.test(destination);
}

/** The absolute path in the image for each entry of a match. */
export function placeEntry(destination: Destination, match: SourceMatch, relativePath: string): string {
  const { path, isDirectory } = destination;
  if (relativePath === "" || !(match.isDirectory || isDirectory)) return path;
  // Both are clean: there is nothing for `posix.join` to do.
  return path === "/" ? `/${relativePath}` : `${path}/${relativePath}`;
}

function isDirectoryWhenStaged(path: string, staged: StagedTypes): boolean {
  return staged.get(path)?.type === "directory" || isStagedBelow(staged, path);
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
