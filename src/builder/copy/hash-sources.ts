import { type FileHashes, type HashOptions, hashFiles } from "../../context/hashing/hash.ts";
import type { FileEntry } from "../../context/sources/entry.ts";
import { createPace } from "../../pace.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { InputObserver } from "../input-observer.ts";
import type { EarlyUploads } from "../staging/early-uploads.ts";
import { collectGarbage } from "../staging/gc.ts";

/**
 * The SHA-256 of the files of a COPY or ADD, by absolute path; what had to be read for it is remembered at once. Each is
 * offered for sending as soon as it is known.
 */
export async function hashSources(
  files: Iterable<FileEntry>,
  {
    early,
    decided = Promise.resolve(),
    inputs,
    ...options
  }: Omit<HashOptions, "cache" | "onHash" | "hashOnTheWay"> & {
    cache: ContextHashes;
    early: Pick<EarlyUploads, "offer"> & Partial<Pick<EarlyUploads, "hashWhileSending">>;
    /** Resolves when it can be said whether they will have to be sent, where that is not so already. */
    decided?: Promise<unknown>;
    inputs: InputObserver | undefined;
  },
): Promise<FileHashes> {
  const before = options.cache.unsaved;
  const hashes = await hashFiles(files, {
    ...options,
    hashOnTheWay: async (file, onBytes) => early.hashWhileSending?.(file, onBytes, decided),
    onHash(file, sha256) {
      early.offer(file, sha256);
      inputs?.file(file.contextPath, sha256);
    },
  });
  const read = options.cache.unsaved - before;
  const pace = createPace(options.signal);
  // Garbage of hashing first, then of saving: the two would add up.
  collectGarbage(read);
  await pace.step();
  options.cache.saveIfDue();
  await pace.step();
  collectGarbage(read);
  await pace.step();
  return hashes;
}
