import { digestOf } from "../../image/digest.ts";
import { readAtMost } from "../../streams.ts";
import { MissingBlobError, type StoredManifest } from "../blob-store.ts";
import type { CacheService, GithubCacheEntry } from "./cache-service.ts";
import type { EntryReader } from "./entry-reader.ts";
import {
  damaged,
  decodeDirectory,
  headBytes,
  type IndexDirectory,
  type IndexHead,
  parseIndexHead,
} from "./index-entry.ts";
import type { PackedBlobs } from "./packed-blobs.ts";

/** The newest index of a branch, as it was read or written. */
interface BranchIndex {
  key: string;
  directory: IndexDirectory;
  manifest: StoredManifest;
  /** The beginning of the entry, which grows as more of it is read. */
  bytes: Uint8Array;
}

/** The indexes of a scope, one for each branch. The key of an index ends with a number that each writer increments. */
export interface BranchIndexes {
  /** Reads the newest index, unless it was read before. Returns `undefined` if there is none. Throws a WrongBlobError for a damaged one. */
  load(tag: string, signal: AbortSignal): Promise<BranchIndex | undefined>;
  /** Returns the key of the next index. */
  nextKey(tag: string): { key: string; number: number };
  /** Skips a number that another index has, complete or not. */
  skipNumber(tag: string, number: number): void;
  /** Adds an index that was written. */
  add(tag: string, index: BranchIndex): void;
  /** Reads a blob that an index itself contains. Returns `undefined` if none does. */
  readEmbedded(digest: string, signal: AbortSignal): Promise<Uint8Array | undefined>;
  hasEmbedded(digest: string): boolean;
}

export function createBranchIndexes(
  scope: string,
  {
    service,
    reader,
    blobs,
  }: { service: CacheService; reader: EntryReader; blobs: Pick<PackedBlobs, "addDirectory"> },
): BranchIndexes {
  const known = new Map<string, BranchIndex>();
  const numbers = new Map<string, number>();
  const prefixOf = (tag: string) => `bough-index-1#${encodeURIComponent(scope)}#${tag}#`;

  async function readTo(index: { key: string; bytes: Uint8Array }, end: number, signal: AbortSignal) {
    if (index.bytes.byteLength >= end) return;
    const start = index.bytes.byteLength;
    const { bytes } = await readAtMost(end, reader.read(index.key, start, end, signal));
    index.bytes = Buffer.concat([index.bytes, bytes]);
    if (index.bytes.byteLength < end) throw damaged();
  }

  async function readIndex({ key }: GithubCacheEntry, signal: AbortSignal): Promise<BranchIndex> {
    const { bytes } = await readAtMost(headBytes, reader.read(key, 0, headBytes, signal));
    const partial: { key: string; bytes: Uint8Array } = { key, bytes };
    const head: IndexHead = parseIndexHead(bytes);
    await readTo(partial, Math.max(head.directoryEnd, head.eagerEnd, head.dictionary?.end ?? 0), signal);
    const directory = await decodeDirectory(partial.bytes, head);
    const { manifest } = directory;
    return {
      ...{ key, directory, bytes: partial.bytes },
      manifest: { ...manifest, digest: digestOf(manifest.bytes) },
    };
  }

  function add(tag: string, index: BranchIndex): void {
    known.set(tag, index);
    blobs.addDirectory(index.directory);
  }

  /** Finds the newest index, also one that was written just before: a search by prefix may not show that at once. */
  async function findNewest(tag: string, signal: AbortSignal): Promise<GithubCacheEntry | undefined> {
    const prefix = prefixOf(tag);
    const found = await service.find(prefix, "prefix", signal);
    const number = numbers.get(tag) ?? 0;
    if (number > numberIn(found?.key ?? "", prefix)) {
      const later = await service.find(`${prefix}${number}`, "exact", signal);
      if (later !== undefined) return later;
    }
    return found;
  }

  return {
    async load(tag, signal) {
      const entry = await findNewest(tag, signal);
      if (entry === undefined) {
        known.delete(tag);
        return undefined;
      }
      reader.add(entry);
      numbers.set(tag, Math.max(numbers.get(tag) ?? 0, numberIn(entry.key, prefixOf(tag))));
      const last = known.get(tag);
      if (last?.key === entry.key) return last;
      try {
        const index = await readIndex(entry, signal);
        add(tag, index);
        return index;
      } catch (error) {
        // The service has evicted the entry since, or the entry is shorter than its head says.
        throw error instanceof MissingBlobError ? damaged() : error;
      }
    },
    nextKey(tag) {
      const number = (numbers.get(tag) ?? 0) + 1;
      return { key: `${prefixOf(tag)}${number}`, number };
    },
    skipNumber: (tag, number) => void numbers.set(tag, Math.max(numbers.get(tag) ?? 0, number)),
    add,
    hasEmbedded: (digest) => known.values().some(({ directory }) => directory.embedded.has(digest)),
    async readEmbedded(digest, signal) {
      for (const index of known.values()) {
        const place = index.directory.embedded.get(digest);
        if (place === undefined) continue;
        await readTo(index, place.offset + place.length, signal);
        return index.bytes.subarray(place.offset, place.offset + place.length);
      }
      return undefined;
    },
  };
}

function numberIn(key: string, prefix: string): number {
  const text = key.startsWith(prefix) ? key.slice(prefix.length) : "";
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
}
