import type { Clock } from "../../clock.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { Store } from "../../store/store.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import type { StepMemory } from "../cache/step-memory.ts";
import type { CarriedCaches } from "../job.ts";
import { supportOf } from "../service-support.ts";
import { findScope } from "./find-scope.ts";
import type { ScopeService } from "./index-images.ts";
import type { StoreOptions } from "./registry/blob-stores.ts";
import { type CacheStore, isLocal } from "./registry/cache-store.ts";
import type { CacheChoice, OpenCaches } from "./registry/open-caches.ts";
import type { SharedImages, SharingService } from "./registry/shared-images.ts";
import { createScopePlace } from "./service-place.ts";
import { shareLayers, shareSteps } from "./shared-cache.ts";
import type { SharedCaches } from "./shared-caches.ts";
import { shareStore } from "./shared-store.ts";
import type { ScopeKeys } from "./signature.ts";
import { createUsedEntries } from "./used-entries.ts";

/** The scopes and other caches that a build reads, in this order, and those that it writes. */
export interface ScopeChoice {
  from: readonly string[];
  to: string | undefined;
  /** Caches outside the service. */
  caches?: CacheChoice | undefined;
}

/** The caches of this machine, extended by those of the scopes. */
interface OpenScopes {
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  /** The images of caches outside the service; `undefined` without such caches. */
  images: SharedImages | undefined;
  /** The cache mounts of such caches. */
  carriedCaches: CarriedCaches | undefined;
  /**
   * Passes the layers that the build has made or used to the writers of the caches, and sends them. `results`: the build's images;
   * empty if it has failed. Rejects only if interrupted, as the build has succeeded by then.
   */
  add(results: readonly string[]): Promise<void>;
}

interface OpenOptions extends ScopeKeys, Pick<StoreOptions, "openStore" | "openScratch"> {
  service: ScopeService & SharingService;
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  shared: SharedCaches;
  session: string;
  /** The realm of the build's cache mounts; see `AskedBuild`. */
  cacheRealm?: string | undefined;
  /** Relative to the context. */
  dockerfile: string;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: Message): void };
}

/** Reads the scopes. Warns of a scope that can't be read, and goes on without it. */
export async function openScopes(choice: ScopeChoice, options: OpenOptions): Promise<OpenScopes> {
  const { from, to } = choice;
  const { service, store, memory, session, dockerfile, clock, signal, log, shared, trusted } = options;
  const scopeOf = (name: string) => {
    const open = () => createScopePlace(name, { service, signal, copies: store.scopeCopies, warn: log.warn });
    return shared.cache(store, name, open, options);
  };
  const reading = { explains: memory.explains, signal, log };
  const found = await Promise.all(from.map((name) => findScope(scopeOf(name), reading)));
  signal.throwIfAborted();
  const caches = await openOtherCaches(choice.caches, options);
  const scopes = [...found, ...(caches?.found ?? [])].filter((scope) => scope !== undefined);
  const isWritten = to !== undefined || caches?.isWritten === true;
  const used = !isWritten ? undefined : createUsedEntries({ store, session, dockerfile, clock });
  const gone = new Set<string>();
  const bases = new Set<string>();
  return {
    store: shareStore(store, { scopes, used, trusted }),
    layers: shareLayers(options.layers, {
      ...{ scopes, used, gone, bases, clock, trusted, onMade: caches?.begin },
      onDistrusted: reporterOf(log),
    }),
    memory: shareSteps(memory, { scopes, used, dockerfile }),
    images: caches?.images,
    carriedCaches: caches?.carried,

    async add(results) {
      if (used === undefined) return;
      const index = used.toIndex();
      if (to !== undefined) {
        // Facts are keyed by images of this service, which other machines can't look up.
        const additions = { index: { ...index, facts: new Map() }, sent: new Set<string>() };
        await scopeOf(to).add(async () => additions, { gone, bases });
      }
      await caches?.add(index, results, gone);
    },
  };
}

/** Opens caches outside the service, as far as it can take layers from there. Warns of the others. */
async function openOtherCaches(
  choice: CacheChoice | undefined,
  options: OpenOptions,
): Promise<OpenCaches | undefined> {
  const { service, store, memory, log } = options;
  if (choice === undefined || choice.from.length + choice.to.length === 0) return undefined;
  const supports = supportOf(service);
  const takesLayers = await supports.remoteLayers();
  // A service elsewhere has no access to the directories of this machine, nor the token of this job.
  const canUse = ({ address }: CacheStore) => takesLayers && (supports.isInThisProcess || !isLocal(address));
  const [from, to] = [choice.from.filter(canUse), choice.to.filter(canUse)];
  const unused = [...choice.from, ...choice.to].filter((cache) => !canUse(cache));
  if (unused.length > 0) {
    const labels = [...new Set(unused.map(({ label }) => label))].join(", ");
    const why = takesLayers
      ? "cannot read what only this machine can, and keeps all layers itself"
      : "keeps all layers itself";
    log.warn(
      wording`cache: ${labels} is not used: ${service.address} ${why}; share them in a scope: ${{ option: "cache-from" }} main ${{ option: "cache-to" }} main`,
    );
  }
  if (from.length + to.length === 0) return undefined;
  const { openCaches } = await import("./registry/open-caches.ts");
  const carriesCaches = await supports.cacheArchives();
  const own = { ...options, imageMetadata: store.imageMetadata, explains: memory.explains, carriesCaches };
  return openCaches({ from, to }, options.shared, own);
}

/** Returns a function that reports, once for each cache, that layers of this machine are not used because they come from it. */
function reporterOf({ info }: OpenOptions["log"]): (caches: readonly string[] | "unknown") => void {
  const reported = new Set<string>();
  return (caches) => {
    const key = String(caches);
    if (reported.has(key)) return;
    reported.add(key);
    info(
      caches === "unknown"
        ? "cache: layers that an earlier bough has stored here are not used: it did not record where they come from"
        : `cache: layers of this machine that come from ${caches.join(", ")} are not used: no trusted key has signed that`,
    );
  };
}
