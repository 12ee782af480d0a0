/** Resolves the sources of `COPY --from` in an image's tree. Pure: the tree is passed in. */
import { posix } from "node:path";
import { escapeGlob, hasWildcard, validPattern } from "../context/patterns/glob.ts";
import {
  compileSourcePattern,
  enterDirectory,
  isMatched,
  type PatternPosition,
  patternStart,
} from "../context/patterns/path-pattern.ts";
import { BoughError } from "../errors.ts";
import { namesOf, PathResolution } from "../paths/path-resolution.ts";

/** The files of an image. All paths are absolute and clean. */
export interface ImageTree {
  /** Looks a path up like lstat(2), but follows no links on the way either. */
  lookUp(path: string): Promise<ImageTreeEntry | undefined>;
  /** Returns names in any order; `directory` was looked up before. */
  list(directory: string): Promise<readonly string[]>;
}

export interface ImageTreeEntry {
  type: "file" | "directory" | "symlink" | "other";
  /** The target of a link. */
  target?: string;
}

export interface ResolvedSource {
  /** The real path: all links, the last one included, are followed inside the root. */
  path: string;
  /** The base name for a copy into a directory: a link's own name; empty for the root. */
  name: string;
  /** Never a link. */
  type: ImageTreeEntry["type"];
}

/**
 * Returns the sources that BuildKit copies for these words. Words are relative to `/` and are cleaned first, so none leads above
 * the root. Names before the first wildcard are literal and must exist. From there on, wildcards match single names (including
 * those that begin with a dot) in real directories only, siblings in byte order. A match that is a link is followed like any
 * other source. A word with a wildcard may match nothing.
 *
 * @throws BoughError if a word without wildcards, the directory before a wildcard, or the target of a link does not exist, if
 * links form a loop, and for a pattern that Go's `filepath.Match` rejects
 */
export async function resolveCopySources(
  words: readonly string[],
  tree: ImageTree,
): Promise<ResolvedSource[]> {
  const sources: ResolvedSource[] = [];
  for (const word of words) {
    const path = posix.join("/", word);
    for (const each of hasWildcard(path) ? await expand(path, word, tree) : [path])
      sources.push({ ...(await follow(each, tree)), name: posix.basename(each) });
  }
  return sources;
}

async function follow(path: string, tree: ImageTree): Promise<Pick<ResolvedSource, "path" | "type">> {
  const tooManyLinks = () =>
    new BoughError(`"${path}": too many links`, { hint: "Symbolic links there form a loop." });
  const resolution = new PathResolution(path, { tooManyLinks });
  let type: ImageTreeEntry["type"] = "directory";
  for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
    const at = `/${resolution.reached.join("/")}`;
    const next = posix.join(at, name);
    const entry: ImageTreeEntry | undefined = type === "directory" ? await tree.lookUp(next) : undefined;
    if (entry === undefined) throw missing(path, next, resolution.isThroughLink);
    if (entry.type !== "symlink") {
      resolution.enter(name);
      type = entry.type;
      continue;
    }
    // As in BuildKit, `..` in a target leads back by name, not through the links before it.
    resolution.follow(posix.resolve(at, entry.target ?? ""));
  }
  return { path: `/${resolution.reached.join("/")}`, type };
}

/** Returns the matching paths, whose last name may be a link. */
async function expand(path: string, word: string, tree: ImageTree): Promise<string[]> {
  const names = namesOf(path);
  const first = names.findIndex(hasWildcard);
  const pattern = validPattern(
    JSON.stringify(word),
    () => compileSourcePattern(names.slice(first).join("/")),
    `To copy the file of that name, write ${escapeGlob(word)}.`,
  );
  const base = await follow(`/${names.slice(0, first).join("/")}`, tree);
  const paths: string[] = [];
  const visit = async (directory: string, position: PatternPosition): Promise<void> => {
    for (const name of (await tree.list(directory)).toSorted(compareBytes)) {
      const child = posix.join(directory, name);
      if (isMatched(pattern, position, name)) {
        paths.push(child);
        continue;
      }
      const next = enterDirectory(pattern, position, name);
      if (next.length > 0 && (await tree.lookUp(child))?.type === "directory") await visit(child, next);
    }
  };
  if (base.type === "directory") await visit(base.path, patternStart);
  return paths;
}

/** Returns the error for a source. `at` is the path that is missing. */
function missing(path: string, at: string, isThroughLink: boolean): BoughError {
  const hint = isThroughLink ? `A symbolic link leads to ${at}, which is missing.` : undefined;
  return new BoughError(`${JSON.stringify(path)}: not found`, { hint });
}

function compareBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
