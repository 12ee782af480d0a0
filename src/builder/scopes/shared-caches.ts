import type { Clock } from "../../clock.ts";
import type { Message } from "../../messages/wording.ts";
import type { CachePlace, FoundIndex } from "./cache-place.ts";
import { type CacheWriter, createCacheWriter } from "./cache-writer.ts";
import { createIndexReader, type IndexReader } from "./read-index.ts";
import type { BlobStores, StoreOptions } from "./registry/blob-stores.ts";
import type { ScopeKeys } from "./signature.ts";

/** A cache of a command: its one reader and its one writer. */
export interface SharedCache extends Pick<IndexReader, "readSteps" | "report">, Pick<CacheWriter, "add"> {
  place: CachePlace;
  /** Reads the cache, once for all builds. */
  read(): Promise<FoundIndex>;
}

/** The shared caches of all builds of a command. The builds add to them, and the command writes them. */
export interface SharedCaches extends Disposable {
  /** @param owner of the key, such as the state of a service. The first build that uses a cache opens its place. */
  cache(owner: object, key: string, open: () => CachePlace, options: CacheOptions): SharedCache;
  /** The stores of caches outside services. */
  stores(options: StoreOptions): Promise<BlobStores>;
  /** Writes all that was added. Rejects only if interrupted. */
  write(): Promise<void>;
}

interface CacheOptions extends Pick<ScopeKeys, "sign" | "verify"> {
  clock: Clock;
  signal: AbortSignal;
}

/** `log`: the command's, since the written entries may come from several builds. */
export function createSharedCaches(log: {
  info(text: string): void;
  warn(text: Message): void;
}): SharedCaches {
  const caches = new Map<object, Map<string, SharedCache & CacheWriter>>();
  let stores: Promise<BlobStores> | undefined;
  let opened: BlobStores | undefined;

  async function openStores(options: StoreOptions): Promise<BlobStores> {
    // Loaded on demand: a build with scopes only does not need it.
    const { createBlobStores } = await import("./registry/blob-stores.ts");
    opened = createBlobStores(options);
    return opened;
  }

  function open(place: CachePlace, { verify, ...options }: CacheOptions): SharedCache & CacheWriter {
    const reader = createIndexReader(place, { verify, warn: log.warn });
    let begun: Promise<FoundIndex> | undefined;
    const read = () => {
      begun ??= reader.read();
      return begun;
    };
    const before = () => read().catch(() => undefined);
    return { ...reader, place, read, ...createCacheWriter(place, { ...options, reader, before, log }) };
  }

  return {
    cache: (owner, key, openPlace, options) =>
      caches
        .getOrInsertComputed(owner, () => new Map())
        .getOrInsertComputed(key, () => open(openPlace(), options)),
    stores(options) {
      stores ??= openStores(options);
      return stores;
    },
    async write() {
      const all = caches.values().flatMap((ofOwner) => ofOwner.values());
      await Promise.all(Array.from(all, (cache) => cache.write()));
    },
    [Symbol.dispose]: () => opened?.[Symbol.dispose](),
  };
}
