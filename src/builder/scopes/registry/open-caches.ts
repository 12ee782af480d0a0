import type { CarriedCaches } from "../../job.ts";
import { findScope } from "../find-scope.ts";
import type { Additions } from "../merge-additions.ts";
import type { ScopeIndex } from "../scope-index.ts";
import type { FoundScope } from "../shared-cache.ts";
import type { SharedCaches } from "../shared-caches.ts";
import type { ScopeKeys } from "../signature.ts";
import { createArtifactPlace } from "./artifact-place.ts";
import { type SendingMachine, type StoreOptions, storeKeyOf } from "./blob-stores.ts";
import { createCarriedCaches, type UsedCaches, withCaches } from "./cache-mounts.ts";
import type { CacheStore, CacheTarget } from "./cache-store.ts";
import { toPortableIndex } from "./portable-index.ts";
import {
  createSharedImages,
  type SharedImageSource,
  type SharedImages,
  type SharingService,
} from "./shared-images.ts";

/** The caches outside a service that a build reads, in this order, and those that it writes. */
export interface CacheChoice {
  from: readonly CacheStore[];
  to: readonly CacheTarget[];
}

interface CacheOptions extends SendingMachine, StoreOptions, Pick<ScopeKeys, "sign" | "verify"> {
  service: SharingService;
  /** True if the service can read and fill caches of cache mounts. */
  carriesCaches: boolean;
  /** The realm of the build's cache mounts. */
  cacheRealm?: string | undefined;
  /** True if the build explains steps, which needs their inputs. */
  explains: boolean;
  log: { info(text: string): void; warn(text: string): void };
}

export interface OpenCaches {
  /** True if some cache is written. */
  isWritten: boolean;
  found: FoundScope[];
  images: SharedImages;
  /** `undefined` if the service can't read and fill caches. */
  carried: CarriedCaches | undefined;
  /** Begins to send a layer that was just made, to the caches that are certain to include it. */
  begin(image: string): void;
  /**
   * Passes the layers that a build has made or used to the writers, and sends them. `results`: its images; empty if it has failed.
   * Rejects only if interrupted.
   */
  add(used: ScopeIndex, results: readonly string[], gone: ReadonlySet<string>): Promise<void>;
}

/** Reads the caches. Warns of one that can't be read, and goes on without it. */
export async function openCaches(
  { from, to }: CacheChoice,
  shared: SharedCaches,
  options: CacheOptions,
): Promise<OpenCaches> {
  const { service, signal, log, clock, cacheRealm } = options;
  const stores = await shared.stores(options);
  const images = createSharedImages(service, log.warn);
  const sources: SharedImageSource[] = [];
  const usedCaches: UsedCaches = new Map();

  const cacheOf = (cache: CacheStore) => {
    const open = () => createArtifactPlace(cache, { ...options, store: stores.open(cache.address) });
    return shared.cache(stores, storeKeyOf(cache), open, options);
  };
  const senderTo = (target: CacheTarget, trusts: boolean) =>
    stores.senderTo(target, options, trusts ? cacheOf(target).read : undefined);

  async function find(cache: CacheStore): Promise<FoundScope | undefined> {
    const found = await findScope(cacheOf(cache), options);
    if (found === undefined) return undefined;
    const { address, label } = cache;
    const source = { ...found, address, label };
    sources.push(source);
    return { ...found, imageOf: (name) => images.declare(name, source), chainOf: images.chainOf };
  }

  async function addTo(
    target: CacheTarget,
    used: ScopeIndex,
    results: readonly string[],
    trusts: boolean,
  ): Promise<Additions> {
    const sender = senderTo(target, trusts);
    const sends = target.mode === "max" ? "all" : results;
    const layers = await toPortableIndex(used, { service, images, sender, sends, now: clock.now(), signal });
    return withCaches(layers, usedCaches, target, { sender, now: clock.now(), signal, warn: log.warn });
  }

  if (!options.carriesCaches && to.some(({ mounts }) => mounts !== undefined))
    log.warn(`cache: mounts= has no effect: ${service.address} keeps the contents of cache mounts itself`);
  const found = await Promise.all(from.map(find));
  return {
    isWritten: to.length > 0,
    found: found.filter((scope) => scope !== undefined),
    images,
    carried: options.carriesCaches
      ? createCarriedCaches(sources, {
          used: usedCaches,
          realm: cacheRealm,
          imageMetadata: options.imageMetadata,
        })
      : undefined,
    begin(image) {
      for (const target of to)
        if (target.mode === "max")
          // Writing the cache sends the layer again, and reports the error if it persists.
          senderTo(target, true)
            .send(image)
            .catch(() => undefined);
    },
    async add(used, results, gone) {
      const none: ReadonlySet<string> = new Set();
      await Promise.all(
        to.map((target) => {
          const make = (trusts: boolean) => addTo(target, used, results, trusts);
          return cacheOf(target).add(make, { gone, bases: none, keepBytes: target.keepBytes });
        }),
      );
    },
  };
}
