import { messageOf } from "../../../errors.ts";
import type { ImageMetadataCache } from "../../../store/image-metadata.ts";
import { keyOfCache, recordCacheOrigin } from "../../cache/cache-origin.ts";
import type { CarriedCaches } from "../../job.ts";
import type { Additions } from "../merge-additions.ts";
import type { ScopeEntry } from "../scope-index.ts";
import type { CacheTarget } from "./cache-store.ts";
import type { LayerSender } from "./send-layers.ts";
import type { SharedImageSource } from "./shared-images.ts";

/** The cache mounts that commands of the build have used, by the key that names them on all machines. */
export type UsedCaches = Map<string, { id: string /** The key of the service's cache. */; key: string }>;

interface CarriedOptions {
  used: UsedCaches;
  /** The realm of the build's cache mounts; see `AskedBuild`. */
  realm: string | undefined;
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
}

/** Finds the newest contents of each cache mount, and adds to `used` those that are used. */
export function createCarriedCaches(
  sources: readonly SharedImageSource[],
  { used, realm, imageMetadata }: CarriedOptions,
): CarriedCaches {
  const newest = new Map<string, { entry: ScopeEntry<"mounts">; source: SharedImageSource }>();
  for (const source of sources)
    for (const [key, entry] of source.index.mounts)
      if (entry.usedAt > (newest.get(key)?.entry.usedAt ?? -1)) newest.set(key, { entry, source });
  return {
    use(cache) {
      const name = keyOfCache(cache);
      const key = keyOfCache(cache, realm);
      used.set(name, { id: cache.id, key });
      const found = newest.get(name);
      if (found === undefined) return undefined;
      const { entry, source } = found;
      recordCacheOrigin(imageMetadata, key, source.origin);
      return { source: source.address, digest: entry.digest, size: entry.size };
    },
  };
}

/** Sends the cache mounts that a build has used and the target includes. Warns of each that can't be sent. */
export async function withCaches(
  additions: Additions,
  used: UsedCaches,
  { mounts, label }: Pick<CacheTarget, "mounts" | "label">,
  {
    sender,
    now,
    signal,
    warn,
  }: { sender: LayerSender; now: number; signal: AbortSignal; warn(text: string): void },
): Promise<Additions> {
  if (mounts === undefined) return additions;
  const sent = new Set(additions.sent);
  for (const [name, { id, key }] of used) {
    if (mounts.ids?.includes(id) === false) continue;
    try {
      const { mediaType, digest, size } = await sender.sendCache(key, mounts.maxBytes);
      additions.index.mounts.set(name, { id, mediaType, digest, size, usedAt: now });
      sent.add(digest);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Error)) throw error;
      warn(`cache: the cache mount ${JSON.stringify(id)} is not written to ${label}: ${messageOf(error)}`);
    }
  }
  return { ...additions, sent };
}
