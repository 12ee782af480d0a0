import type { FileEntry } from "../context/entry.ts";
import { type HashOptions, hashFiles } from "../context/hash.ts";
import type { ContextHashes } from "../store/hashes.ts";
import { collectLeftovers } from "./leftovers.ts";

/** The SHA-256 of the files of a COPY or ADD, by absolute path; what had to be read for it is remembered at once. */
export async function hashSources(
  files: readonly FileEntry[],
  options: Omit<HashOptions, "cache"> & { cache: ContextHashes },
): Promise<ReadonlyMap<string, string>> {
  const hashes = await hashFiles(files, options);
  const { unsaved } = options.cache;
  // Of hashing, and then of saving: the two would add up.
  collectLeftovers(unsaved);
  options.cache.save();
  collectLeftovers(unsaved);
  return hashes;
}
