import { posix } from "node:path";
import { includeFilters } from "../../context/patterns/filters.ts";
import { hasWildcard, unescapeGlob } from "../../context/patterns/glob.ts";
import { parseExcludeFlags } from "../../context/patterns/ignore.ts";
import { decidePath, enterPath, isMatch } from "../../context/patterns/rules.ts";
import type { CopyInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { resolveCopySources } from "../../image/copy-sources.ts";
import { directoryMode } from "../../image/file-mode.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { CopiedEntry, CopiedSource } from "../../store/copies.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { createContentUploads } from "../operations/content-uploads.ts";
import { collectBetweenSteps } from "../operations/gc.ts";
import { maxSingleFiles } from "../staging/image-archive.ts";
import { createListedTree, type Reading, readImageDirectory, readImageFile } from "./read-source.ts";
import type { CopyWords } from "./words.ts";

/**
 * Reads the sources of a `COPY --from`, or of a mount, in an image of the service and uploads their contents. The result is
 * remembered; then nothing is asked or sent.
 *
 * @throws BoughError for missing sources, for a service that can't show an image's contents, and for impossible responses
 */
export async function readFromImage(
  { paths, exclude }: Pick<CopyWords, "paths" | "exclude">,
  { name, parents, range }: Pick<Instruction, "name" | "range"> & Pick<CopyInstruction, "parents">,
  image: string,
  build: BuildJob,
): Promise<readonly CopiedSource[]> {
  const { copies } = build.services.store;
  const words = storeKeyOf({ paths, exclude }, parents);
  const known = copies.get(image, words);
  if (known !== undefined) return known;

  const rules = parseExcludeFlags(exclude);
  const tree = createListedTree(image, build.services.service);
  // Begun now, while `requireInspect` waits for the service.
  for (const path of paths) if (!hasWildcard(path)) tree.prepare(posix.join("/", path));
  await requireInspect(image, name, build.services);
  const contents = createContentUploads(build, maxSingleFiles);
  const reading: Reading = { image, tree, contents, skipped: [] };
  const isExcluded = (path: string) => rules.length > 0 && isMatch(decidePath(rules, path, "effective"));
  const read: CopiedSource[][] = [];
  if (parents) {
    for (const word of paths) read.push(await readWithParents(word, isExcluded, reading, build));
  } else {
    const found = await resolveCopySources(paths, tree);
    await forEachConcurrently(
      found.entries(),
      maxConcurrentSources,
      build.services.signal,
      async ([index, source]) => {
        if (source.type === "directory")
          read[index] = [await readImageDirectory(source, isExcluded, reading, build)];
        else if (source.type === "file") read[index] = [await readImageFile(source, reading, build)];
        else reading.skipped.push(source.path);
      },
    );
  }
  await contents.finish();
  if (reading.skipped.length > 0)
    build.emit({ type: "warning", message: skippedMessage(reading.skipped), line: range.start });
  const sources = read.flat();
  const entries = sources.reduce((sum, source) => sum + source.entries.length, 0);
  collectBetweenSteps(entries);
  copies.set(image, words, sources);
  collectBetweenSteps(entries);
  return sources;
}

/** Returns true if the store remembers what these words copy from the image. */
export function isReadBefore(
  words: Pick<CopyWords, "paths" | "exclude">,
  { parents }: Pick<CopyInstruction, "parents">,
  image: string,
  { store }: BuildServices,
): boolean {
  return store.copies.get(image, storeKeyOf(words, parents)) !== undefined;
}

function storeKeyOf({ paths, exclude }: Pick<CopyWords, "paths" | "exclude">, parents: boolean): string {
  return JSON.stringify({ paths, parents, exclude });
}

/** Each source has its own connection, with some MiB in flight. */
const maxConcurrentSources = 4;

async function requireInspect(
  image: string,
  name: Instruction["name"],
  { inspection }: BuildServices,
): Promise<void> {
  if (await inspection.isDirectory(image, "/")) return;
  const user = name === "RUN" ? "RUN --mount with from=" : "COPY --from";
  throw new BoughError(
    `the service can't list the files of an image, which ${user} needs: it does not support GET /v1/inspect/{image_uuid}/list`,
    { hint: "Build on the embedded engine, or on a service that supports the call." },
  );
}

function skippedMessage(paths: readonly string[]): string {
  const [first = "", ...others] = paths;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `pipes and sockets are not copied: ${first}${more}`;
}

/**
 * Reads a word of `COPY --from --parents`. Its matches keep their directories, with owners and modes, from the root or from a
 * pivot `/./` on. The part after the pivot may contain `**`, and no link in it is followed.
 */
async function readWithParents(
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
      const { entries } = await readImageFile({ path, name }, reading, build);
      return [...above, ...entries.map((entry) => ({ ...entry, path: next }))];
    }
    reading.skipped.push(path);
    return [];
  }
  const within = (path: string) => posix.join(at, path);
  const directory = { path: posix.join(base, at), name: "" };
  const { entries } = await readImageDirectory(directory, (path) => isLeftOut(within(path)), reading, build);
  const isMatched = at !== "" && !isLeftOut(at);
  if (entries.length === 0 && !isMatched) return [];
  return [...above, ...entries.map((entry) => placeWithin(entry, within))];
}

function placeWithin(entry: CopiedEntry, within: (path: string) => string): CopiedEntry {
  const path = within(entry.path);
  if (entry.type !== "file" || entry.original === undefined) return { ...entry, path };
  return { ...entry, path, original: within(entry.original) };
}
