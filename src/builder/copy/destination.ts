import type { SourceMatch } from "../../context/sources/entry.ts";
import { pathInImage } from "../interpreter/path-in-image.ts";
import { isStagedBelow } from "../staging/staged.ts";

/** Where the sources of one COPY or ADD go: into a directory, or a single file to exactly this path. */
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

/**
 * The Dockerfile reference's rules for `<dest>`: relative to WORKDIR; a directory where it ends in a slash, is `.`, or is
 * one already. `isDirectoryInImage` is asked only where nothing else decides.
 */
export async function resolveDestination(
  destination: string,
  workdir: string,
  staged: StagedTypes,
  sources: DestinationSources,
  isDirectoryInImage: (path: string) => Promise<boolean>,
): Promise<Destination> {
  const path = pathInImage(workdir, destination);
  const isDirectory =
    namesDirectory(destination) ||
    sources.count === 0 ||
    sources.makesDirectory ||
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
