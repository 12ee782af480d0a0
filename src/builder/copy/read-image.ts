import { posix } from "node:path";
import { hasWildcard } from "../../context/patterns/glob.ts";
import { parseExcludeFlags } from "../../context/patterns/ignore.ts";
import { decidePath, isMatch } from "../../context/patterns/rules.ts";
import type { CopyInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { resolveCopySources } from "../../image/copy-sources.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { CopiedSource } from "../../store/copies.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { collectBetweenSteps } from "../operations/gc.ts";
import { createImageContents } from "../operations/image-contents.ts";
import { maxSingleFiles } from "../staging/image-archive.ts";
import { createListedTree } from "./image-tree.ts";
import { readWithParents } from "./read-parents.ts";
import { type Reading, readDirectory, readFile } from "./read-source.ts";
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
  const words = questionOf({ paths, exclude }, parents);
  const known = copies.get(image, words);
  if (known !== undefined) return known;

  const rules = parseExcludeFlags(exclude);
  const tree = createListedTree(image, build.services.service);
  // Beside the question whether the service has lists.
  for (const path of paths) if (!hasWildcard(path)) tree.prepare(posix.join("/", path));
  await requireInspect(image, name, build.services);
  const contents = createImageContents(build, maxSingleFiles);
  const reading: Reading = { image, tree, contents, skipped: [] };
  const isExcluded = (path: string) => rules.length > 0 && isMatch(decidePath(rules, path));
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
          read[index] = [await readDirectory(source, isExcluded, reading, build)];
        else if (source.type === "file") read[index] = [await readFile(source, reading, build)];
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
  return store.copies.get(image, questionOf(words, parents)) !== undefined;
}

function questionOf({ paths, exclude }: Pick<CopyWords, "paths" | "exclude">, parents: boolean): string {
  return JSON.stringify({ paths, parents, exclude });
}

/** Each source has its own connection, with some MiB in flight. */
const maxConcurrentSources = 4;

async function requireInspect(
  image: string,
  name: Instruction["name"],
  { facts }: BuildServices,
): Promise<void> {
  if (await facts.isDirectory(image, "/")) return;
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
