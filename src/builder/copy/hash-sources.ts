import { type HashOptions, hashEach } from "../../context/hashing/hash.ts";
import type { ListedFile, SourceMatch } from "../../context/sources/entry-list.ts";
import { createPace } from "../../pace.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { InputObserver } from "../contexts/named-context.ts";
import { collectGarbage } from "../operations/gc.ts";
import type { EagerUploads } from "../prefetch.ts";

type HashSourcesOptions = Omit<HashOptions, "cache" | "onHash" | "onContent" | "hashWhileSending"> & {
  cache: ContextHashes;
  eagerUploads: Pick<EagerUploads, "offer"> & Partial<Pick<EagerUploads, "contents" | "hashWhileSending">>;
  /** Resolves when it is decided whether the files have to be sent. Default: that is known already. */
  decided?: Promise<unknown>;
  inputs: InputObserver | undefined;
};

/** Hashes the files of matches, as `hashSources` does. */
export async function hashMatches(
  matches: readonly SourceMatch[],
  options: HashSourcesOptions,
): Promise<{ areSettled: boolean }> {
  return hashSources(filesOf(matches), options);
}

function* filesOf(matches: readonly SourceMatch[]): Generator<ListedFile, undefined> {
  for (const { entries } of matches) for (const entry of entries) if (entry.type === "file") yield entry;
}

/**
 * Hashes files of a COPY or ADD and sets the hashes in their lists. Remembers new hashes at once. Offers each file for sending as
 * soon as its hash is known. `areSettled`: see `hashEach`.
 */
export async function hashSources(
  files: Iterable<ListedFile>,
  { eagerUploads, decided = Promise.resolve(), inputs, ...options }: HashSourcesOptions,
): Promise<{ areSettled: boolean }> {
  const before = options.cache.unsaved;
  const hashed = await hashEach(files, {
    ...options,
    hashWhileSending: async (file, onBytes) => eagerUploads.hashWhileSending?.(file, onBytes, decided),
    onContent: eagerUploads.contents?.keep,
    onHash(file, sha256) {
      file.list.setHash(file, sha256);
      eagerUploads.offer(file, sha256);
      inputs?.file?.(file.contextPath, sha256);
    },
  });
  const read = options.cache.unsaved - before;
  const pace = createPace(options.signal);
  // Collected after hashing and again after saving, whose garbage would add up.
  collectGarbage(read);
  await pace.step();
  await options.cache.saveIfDue(pace);
  await pace.step();
  collectGarbage(read);
  await pace.step();
  return hashed;
}
