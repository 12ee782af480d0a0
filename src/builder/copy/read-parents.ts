import { posix } from "node:path";
import { includeFilters } from "../../context/patterns/filters.ts";
import { hasWildcard, unescapeGlob } from "../../context/patterns/glob.ts";
import { enterPath, isMatch } from "../../context/patterns/rules.ts";
import { BoughError } from "../../errors.ts";
import { resolveCopySources } from "../../image/copy-sources.ts";
import { directoryMode } from "../../image/file-mode.ts";
import type { CopiedEntry, CopiedSource } from "../../store/copies.ts";
import type { BuildJob } from "../job.ts";
import { type Reading, readDirectory, readFile } from "./read-source.ts";

/**
 * Reads a word of `COPY --from --parents`. Its matches keep their directories, with owners and modes, from the root or from a
 * pivot `/./` on. The part after the pivot may contain `**`, and no link in it is followed.
 */
export async function readWithParents(
  word: string,
  isExcluded: (path: string) => boolean,
  reading: Reading,
  build: BuildJob,
): Promise<CopiedSource[]> {
  const pivot = word.indexOf("/./");
  const base = pivot < 0 ? "/" : word.slice(0, pivot);
  const names = posix
    .join("/", pivot < 0 ? word : word.slice(pivot + 3))
    .split("/")
    .filter(Boolean);
  const [include] = includeFilters(names.join("/"), JSON.stringify(word));
  const isOptional = hasWildcard(base) || names.some(hasWildcard);
  const sources: CopiedSource[] = [];
  for (const { path, name, type } of await resolveCopySources([base], reading.tree)) {
    const left = (entry: string) =>
      isExcluded(entry) || (include !== undefined && !isMatch(enterPath(include.cursor, entry).decision));
    const entries = type === "directory" ? await readMatches(path, names, left, reading, build) : undefined;
    if (entries === undefined && !isOptional)
      throw new BoughError(`${JSON.stringify(posix.join(path, ...names))}: not found`, {
        hint: "With --parents, links after the pivot /./ are not followed.",
      });
    // A wildcard without a match makes no directory.
    if (entries !== undefined && entries.length > 0) sources.push({ path, name, type: "directory", entries });
  }
  return sources;
}

/** Walks down to the first wildcard and reads the directory there; returns `undefined` if a name on the way does not exist. */
async function readMatches(
  base: string,
  names: readonly string[],
  isLeftOut: (path: string) => boolean,
  reading: Reading,
  build: BuildJob,
): Promise<CopiedEntry[] | undefined> {
  const above: CopiedEntry[] = [];
  let at = "";
  for (const [index, name] of names.entries()) {
    if (hasWildcard(name)) break;
    const next = posix.join(at, unescapeGlob(name));
    const path = posix.join(base, next);
    const found = await reading.tree.lookUp(path);
    const listed = await reading.tree.describe(path);
    if (found === undefined || listed === undefined) return undefined;
    const { uid, gid, mode } = listed;
    if (found.type === "directory") {
      above.push({ type: "directory", path: next, mode: mode ?? directoryMode, uid, gid });
      at = next;
      continue;
    }
    if (index < names.length - 1) return undefined;
    if (isLeftOut(next)) return [];
    if (found.type === "symlink")
      return [...above, { type: "symlink", path: next, target: found.target ?? "", uid, gid }];
    if (found.type === "file") {
      const { entries } = await readFile({ path, name }, reading, build);
      return [...above, ...entries.map((entry) => ({ ...entry, path: next }))];
    }
    reading.skipped.push(path);
    return [];
  }
  const within = (path: string) => posix.join(at, path);
  const directory = { path: posix.join(base, at), name: "" };
  const { entries } = await readDirectory(directory, (path) => isLeftOut(within(path)), reading, build);
  const isMatched = at !== "" && !isLeftOut(at);
  if (entries.length === 0 && !isMatched) return [];
  return [...above, ...entries.map((entry) => placeWithin(entry, within))];
}

function placeWithin(entry: CopiedEntry, within: (path: string) => string): CopiedEntry {
  const path = within(entry.path);
  if (entry.type !== "file" || entry.original === undefined) return { ...entry, path };
  return { ...entry, path, original: within(entry.original) };
}
