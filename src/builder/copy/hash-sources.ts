import { type HashOptions, hashEach } from "../../context/hashing/hash.ts";
import type { ListedFile } from "../../context/sources/entry-list.ts";
import type { SourceMatch } from "../../context/sources/source-match.ts";
import { createPace } from "../../pace.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { InputObserver } from "../input-observer.ts";
import type { EarlyUploads } from "../staging/early-uploads.ts";
import { collectGarbage } from "../staging/gc.ts";

type HashSourcesOptions = Omit<HashOptions, "cache" | "onHash" | "onContent" | "hashOnTheWay"> & {
  cache: ContextHashes;
  early: Pick<EarlyUploads, "offer"> & Partial<Pick<EarlyUploads, "contents" | "hashWhileSending">>;
  /** Resolves when it can be said whether they will have to be sent, where that is not so already. */
  decided?: Promise<unknown>;
  inputs: InputObserver | undefined;
};

/** Hashes the files that sources have come to, as `hashSources` does. */
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
 * Hashes files of a COPY or ADD; their lists have the hashes from then on. What had to be read is remembered at once. Each file is
 * offered for sending as soon as its hash is known. `areSettled`: see `hashEach`.
 */
export async function hashSources(
  files: Iterable<ListedFile>,
  { early, decided = Promise.resolve(), inputs, ...options }: HashSourcesOptions,
): Promise<{ areSettled: boolean }> {
  const before = options.cache.unsaved;
  const hashed = await hashEach(files, {
    ...options,
    hashOnTheWay: async (file, onBytes) => early.hashWhileSending?.(file, onBytes, decided),
    onContent: early.contents?.keep,
    onHash(file, sha256) {
      file.list.setHash(file, sha256);
      early.offer(file, sha256);
      inputs?.file(file.contextPath, sha256);
    },
  });
  const read = options.cache.unsaved - before;
  const pace = createPace(options.signal);
  // Garbage of hashing first, then of saving: the two would add up.
  collectGarbage(read);
  await pace.step();
  await options.cache.saveIfDue(pace);
  await pace.step();
  collectGarbage(read);
  await pace.step();
  return hashed;
}
