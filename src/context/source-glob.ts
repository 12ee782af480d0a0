import { BoughError } from "../errors.ts";
import { displayPath } from "./display-path.ts";
import type { EntryPaths } from "./entry-of.ts";
import type { FileSystem } from "./file-system.ts";
import { escapeGlob, GlobSyntaxError, hasWildcard } from "./glob.ts";
import type { Pace } from "./pace.ts";
import {
  compileSourcePattern,
  enterDirectory,
  isMatched,
  type PathPattern,
  patternStart,
} from "./path-pattern.ts";
import type { Rule } from "./rules.ts";
import { childPaths, enterFilters, type Filter, mayKeepBelow, passes, readNames, statChild } from "./walk.ts";

/** A source with wildcards: the directory before the first of them, and the pattern below it. */
export interface SourceGlob {
  /** Clean, without wildcards and escapes; "" is the context root. */
  base: string;
  pattern: PathPattern;
}

/**
 * @param path clean, relative to the context root
 * @throws BoughError where Go's `filepath.Match` calls the pattern bad
 */
export function parseSourceGlob(source: string, path: string): SourceGlob {
  const names = path.split("/");
  const first = names.findIndex(hasWildcard);
  try {
    return {
      base: unescapeGlob(names.slice(0, first).join("/")),
      pattern: compileSourcePattern(names.slice(first).join("/")),
    };
  } catch (error) {
    if (!(error instanceof GlobSyntaxError)) throw error;
    throw new BoughError(`${displayPath(source)} is not a valid pattern: ${error.message}`, {
      hint: `For the file of that name write ${displayPath(escapeGlob(path))}.`,
    });
  }
}

export function unescapeGlob(path: string): string {
  return path.replace(/\\(.)/gs, "$1");
}

/**
 * The paths that match, in the order of their bytes. Links on the way are not followed, and what is below a
 * matching directory is part of that match, as in Docker.
 */
export async function expandGlob(
  base: EntryPaths,
  pattern: PathPattern,
  filters: readonly Filter[],
  files: FileSystem,
  pace: Pace,
): Promise<{ paths: EntryPaths[]; ignoredBy: Rule | undefined }> {
  const paths: EntryPaths[] = [];
  let ignoredBy: Rule | undefined;

  const visit = async (
    parent: EntryPaths,
    position: readonly number[],
    parentFilters: readonly Filter[],
  ): Promise<void> => {
    for (const name of readNames(parent, files)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;

      const matched = isMatched(pattern, position, name);
      const next = matched ? [] : enterDirectory(pattern, position, name);
      if (!matched && next.length === 0) continue;
      const below = enterFilters(parentFilters, name);
      if (!mayKeepBelow(below)) {
        ignoredBy ??= below.find((filter) => !passes(filter, filter.cursor.decision))?.cursor.decision;
        continue;
      }
      const child = childPaths(parent, name);
      if (matched) paths.push(child);
      else if (statChild(child, files).isDirectory()) await visit(child, next, below);
    }
  };
  await visit(base, patternStart, filters);
  return { paths, ignoredBy };
}
