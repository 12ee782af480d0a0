import { MissingBlobError } from "../blob-store.ts";
import { RegistryError } from "../registry-error.ts";
import type { CacheService, EntryPart, GithubCacheEntry } from "./cache-service.ts";

/** Reads parts of entries by their keys. It looks up the address of each entry once. */
export interface EntryReader {
  /** Adds the address of an entry that was found. */
  add(entry: GithubCacheEntry): void;
  /** Returns true if there is such an entry. */
  has(key: string, signal: AbortSignal): Promise<boolean>;
  /** Yields the bytes from `start` to `end`, or fewer if the entry ends before. Throws a MissingBlobError if it is gone. */
  read(key: string, start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array>;
}

/** The limit of consecutive attempts that receive no byte. */
const maxEmptyAttempts = 3;

export function createEntryReader(service: CacheService): EntryReader {
  const addresses = new Map<string, Promise<string | undefined>>();

  function addressOf(key: string, signal: AbortSignal): Promise<string | undefined> {
    return addresses.getOrInsertComputed(key, () => {
      const found = service.find(key, "exact", signal).then((entry) => entry?.url);
      found.catch(() => addresses.delete(key));
      return found;
    });
  }

  async function open(
    key: string,
    part: { start: number; end: number },
    signal: AbortSignal,
  ): Promise<EntryPart | undefined> {
    const found = addressOf(key, signal);
    const url = await found;
    const opened = url === undefined ? undefined : await service.open(url, part, signal);
    if (opened !== undefined || url === undefined) return opened;
    // The address may have expired.
    if (addresses.get(key) === found) addresses.delete(key);
    const renewed = await addressOf(key, signal);
    return renewed === undefined ? undefined : service.open(renewed, part, signal);
  }

  return {
    add: ({ key, url }) => void addresses.set(key, Promise.resolve(url)),
    has: async (key, signal) => (await addressOf(key, signal)) !== undefined,
    async *read(key, start, end, signal) {
      let at = start;
      for (let emptyAttempts = 0; at < end; ) {
        const part = await open(key, { start: at, end }, signal);
        if (part === undefined && at === start)
          throw new MissingBlobError(`the entry ${key} has been evicted, or is shorter than expected`);
        if (part === undefined || at >= part.total) return;
        const before = at;
        for await (const chunk of untilTransientFailure(part.body)) {
          at += chunk.byteLength;
          yield chunk;
        }
        if (at >= Math.min(end, part.total)) return;
        emptyAttempts = at === before ? emptyAttempts + 1 : 0;
        if (emptyAttempts >= maxEmptyAttempts) throw new MissingBlobError(`the entry ${key} breaks off`);
      }
    },
  };
}

/** Yields a body's chunks, and ends at a transient failure. */
async function* untilTransientFailure(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (!(error instanceof RegistryError) || !error.isTransient) throw error;
  }
}
