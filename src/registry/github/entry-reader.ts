import { MissingBlobError } from "../blob-store.ts";
import { RegistryError } from "../registry-error.ts";
import type { CacheService, EntryPart, GithubCacheEntry } from "./cache-service.ts";

/** Reads parts of entries by their keys. The service is asked once for the address of each. */
export interface EntryReader {
  /** Notes an entry that was found. */
  note(entry: GithubCacheEntry): void;
  /** Returns true if there is such an entry. */
  has(key: string, signal: AbortSignal): Promise<boolean>;
  /** Yields the bytes from `start`; less than asked for if the entry ends. Throws a MissingBlobError if it is gone. */
  read(key: string, start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array>;
}

/** Attempts to continue a transfer that breaks off before a byte has come. */
const maxFruitless = 3;

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
    // An address expires.
    if (addresses.get(key) === found) addresses.delete(key);
    const renewed = await addressOf(key, signal);
    return renewed === undefined ? undefined : service.open(renewed, part, signal);
  }

  return {
    note: ({ key, url }) => void addresses.set(key, Promise.resolve(url)),
    has: async (key, signal) => (await addressOf(key, signal)) !== undefined,
    async *read(key, start, end, signal) {
      let at = start;
      for (let fruitless = 0; at < end; ) {
        const part = await open(key, { start: at, end }, signal);
        if (part === undefined && at === start)
          throw new MissingBlobError(`the cache has no entry ${key} any more, or less of it`);
        if (part === undefined || at >= part.total) return;
        const before = at;
        for await (const chunk of untilItFails(part.body)) {
          at += chunk.byteLength;
          yield chunk;
        }
        if (at >= Math.min(end, part.total)) return;
        fruitless = at === before ? fruitless + 1 : 0;
        if (fruitless >= maxFruitless) throw new MissingBlobError(`the entry ${key} breaks off`);
      }
    },
  };
}

/** Ends where the body fails in a way that may pass. */
async function* untilItFails(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (!(error instanceof RegistryError) || !error.isTransient) throw error;
  }
}
