import type { Clock } from "../../clock.ts";
import { digestOf } from "../../image/digest.ts";
import { readAtMost } from "../../streams.ts";
import { type BlobStore, MissingBlobError, verified, WrongBlobError } from "../blob-store.ts";
import { createBranchIndexes } from "./branch-indexes.ts";
import type { CacheService } from "./cache-service.ts";
import { createEntryReader } from "./entry-reader.ts";
import { createPackedBlobs } from "./packed-blobs.ts";
import { writeBranchIndex } from "./write-index.ts";

interface StoreOptions {
  address: string;
  scope: string;
  /** Tags of the branches whose entries can be read. */
  tags: readonly string[];
  service: CacheService;
  clock: Clock;
}

/** A write makes two entries, and a repository may make few in a minute. */
const minWriteIntervalMilliseconds = 5 * 60_000;
/** The size limit of blobs that wait in memory: the manifest decides whether they go into the index. Larger ones are sent at once. */
const maxHeldBlobBytes = 1024 * 1024;

/**
 * Opens a scope of GitHub's cache as a store of manifests and blobs. A tag stands for a branch: the service separates the entries of
 * branches, and each has an index. Blobs are sent into one pack as they arrive, and become visible with the index that names them.
 */
export function createGithubStore({ address, scope, tags, service, clock }: StoreOptions): BlobStore {
  const reader = createEntryReader(service);
  const blobs = createPackedBlobs(service);
  const indexes = createBranchIndexes(scope, { service, reader, blobs });
  let loaded: Promise<unknown> | undefined;

  const knows = (digest: string) =>
    blobs.held(digest) !== undefined || blobs.find(digest) !== undefined || indexes.hasEmbedded(digest);

  /** Reads all indexes once, for a caller that has read no manifest. */
  async function loadAll(signal: AbortSignal): Promise<void> {
    loaded ??= Promise.all(tags.map((tag) => unlessDamaged(indexes.load(tag, signal))));
    loaded.catch(() => {
      loaded = undefined;
    });
    await loaded;
  }

  /** Yields a blob. Forgets its pack if that is missing, short or wrong, so that its blobs can be stored again. */
  async function* readBlob({ digest, size }: { digest: string; size: number }, signal: AbortSignal) {
    const whole = blobs.held(digest) ?? (await indexes.readEmbedded(digest, signal));
    if (whole !== undefined) {
      yield whole;
      return;
    }
    const place = blobs.find(digest);
    if (place === undefined) throw missing(digest);
    const { pack, offset } = place;
    const chunks = reader.read(pack, offset, offset + size, signal);
    try {
      yield* verified(chunks, { digest, size }, `${address}: the blob`);
    } catch (error) {
      if (error instanceof WrongBlobError || error instanceof MissingBlobError) blobs.forgetPack(pack);
      throw error;
    }
  }

  const missing = (digest: string) => new MissingBlobError(`${address} has no blob ${digest}`);

  return {
    address,
    getManifest: async (tag, signal) => (await indexes.load(tag, signal))?.manifest,
    findDigest: async (tag, signal) => (await unlessDamaged(indexes.load(tag, signal)))?.manifest.digest,
    putManifest: (tag, { mediaType, bytes }, signal) =>
      writeBranchIndex(
        tag,
        { digest: digestOf(bytes), mediaType, bytes },
        { service, reader, indexes, blobs, clock },
        signal,
      ),
    async removeManifest() {
      throw new RangeError("unreachable: see removeStore");
    },
    async hasBlob({ digest }, signal) {
      if (!knows(digest)) await loadAll(signal);
      const place = blobs.find(digest);
      if (place === undefined || blobs.isOpen(place.pack)) return knows(digest);
      if (await reader.has(place.pack, signal)) return true;
      blobs.forgetPack(place.pack);
      return false;
    },
    async openBlob(blob, signal, checks) {
      if (!knows(blob.digest)) await loadAll(signal);
      if (!knows(blob.digest)) throw missing(blob.digest);
      return verified(readBlob(blob, signal), blob, `${address}: the blob`, checks);
    },
    async putBlob(blob, open, signal) {
      if (knows(blob.digest)) return;
      const content = verified(open(), blob, "what is stored");
      if (blob.size <= maxHeldBlobBytes) {
        const { bytes } = await readAtMost(blob.size, content);
        if (!blobs.hold(blob.digest, bytes)) await blobs.append(blob.digest, [bytes], { signal });
      } else await blobs.append(blob.digest, content, { signal });
    },
    minWriteIntervalMilliseconds,
    mountBlob: async () => false,
    lock: async () => undefined,
  };
}

async function unlessDamaged<T>(loading: Promise<T>): Promise<T | undefined> {
  try {
    return await loading;
  } catch (error) {
    if (error instanceof WrongBlobError) return undefined;
    throw error;
  }
}
