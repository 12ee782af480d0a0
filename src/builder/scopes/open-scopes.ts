import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { Store } from "../../store/store.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import type { StepMemory } from "../cache/step-memory.ts";
import type { CarriedCaches } from "../job.ts";
import { supportOf } from "../service-support.ts";
import type { DecodedIndex, UnusableIndexError } from "./index-file.ts";
import type { ScopeService } from "./index-images.ts";
import { type ReadOptions, readScope, readSteps } from "./read-scope.ts";
import { type CacheStore, isDirectory } from "./registry/cache-store.ts";
import type { CacheChoice, CacheOptions, OpenCaches } from "./registry/open-caches.ts";
import type { SharedImages, SharingService } from "./registry/shared-images.ts";
import { formatLayers } from "./scope-index.ts";
import { type FoundScope, shareLayers, shareSteps, shareStore } from "./shared-cache.ts";
import type { ScopeKeys } from "./signature.ts";
import { createUsedEntries } from "./used-entries.ts";
import { writeScope } from "./write-scope.ts";

/** The scopes and other caches that a build reads, in this order, and those that it writes. */
export interface ScopeChoice {
  from: readonly string[];
  to: string | undefined;
  /** Caches outside the service. */
  caches?: CacheChoice | undefined;
}

/** The cache that a build uses instead of this machine's own: that one, extended by the scopes. */
interface OpenScopes extends Disposable {
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  /** What the images of caches outside the service are made of; `undefined` without such caches. */
  images: SharedImages | undefined;
  /** The cache mounts of such caches. */
  carriedCaches: CarriedCaches | undefined;
  /**
   * Writes what the build has made or used, once. `result`: its image; `undefined` if it has failed. Rejects only if interrupted, as
   * the build has succeeded by then.
   */
  finish(results: readonly string[]): Promise<void>;
}

interface ScopesOptions extends ScopeKeys, Pick<CacheOptions, "openStore" | "openScratch"> {
  service: ScopeService & SharingService;
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  session: string;
  /** Relative to the context. */
  dockerfile: string;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** Reads the scopes. Warns of a scope that can't be read, and goes on without it. */
export async function openScopes(choice: ScopeChoice, options: ScopesOptions): Promise<OpenScopes> {
  const { from, to } = choice;
  const { service, store, memory, session, dockerfile, clock, signal, log, verify, sign } = options;
  const known = new Map<string, DecodedIndex | UnusableIndexError>();
  const reading: ReadOptions = { service, verify, known, warn: log.warn, copies: store.scopeCopies };
  const scopes: FoundScope[] = [];
  const found = await Promise.all(from.map((name) => tryRead(name, memory.explains, reading, signal)));
  for (const [at, name] of from.entries()) {
    const scope = found[at];
    if (scope instanceof Error) log.warn(`cache: scope ${name} is not used: ${scope.message}`);
    else if (scope?.written !== undefined) scopes.push({ name, index: scope.index });
    // The reason why an index can't be used has been reported.
    else if (scope?.images.length === 0) log.info(`cache: scope ${name} is empty`);
  }

  const caches = await openOtherCaches(choice.caches, options);
  scopes.push(...(caches?.found ?? []));
  const isWritten = to !== undefined || caches?.isWritten === true;
  const used = !isWritten ? undefined : createUsedEntries({ store, session, dockerfile, clock });
  let isFinished = false;
  const gone = new Set<string>();
  const bases = new Set<string>();
  return {
    store: shareStore(store, scopes, used),
    layers: shareLayers(options.layers, { scopes, used, gone, bases, clock, onMade: caches?.begin }),
    memory: shareSteps(memory, { scopes, used, dockerfile }),
    images: caches?.images,
    carriedCaches: caches?.carried,
    [Symbol.dispose]: () => caches?.[Symbol.dispose](),

    async finish(results) {
      if (used === undefined || isFinished) return;
      isFinished = true;
      const additions = used.toIndex();
      await caches?.finish(additions, results, gone);
      if (to === undefined) return;
      try {
        const writing = { ...reading, sign, clock, signal, bases: [...bases] };
        const written = await writeScope(to, { ...additions, facts: new Map() }, gone, writing);
        if (written !== undefined)
          log.info(`cache: scope ${to} has ${formatLayers(written.all)}, ${written.added} new`);
      } catch (error) {
        signal.throwIfAborted();
        // The build has succeeded.
        log.warn(`cache: nothing is written to scope ${to}: ${messageOf(error)}`);
      }
    },
  };
}

/** Opens caches outside the service, as far as it can take layers from there. Warns of the others. */
async function openOtherCaches(
  choice: CacheChoice | undefined,
  options: ScopesOptions,
): Promise<OpenCaches | undefined> {
  const { service, store, memory, log } = options;
  if (choice === undefined || choice.from.length + choice.to.length === 0) return undefined;
  const supports = supportOf(service);
  const takesLayers = await supports.remoteLayers();
  // A service elsewhere has no access to the directories of this machine.
  const canUse = ({ address }: CacheStore) =>
    takesLayers && (supports.isInThisProcess || !isDirectory(address));
  const [from, to] = [choice.from.filter(canUse), choice.to.filter(canUse)];
  const unused = [...choice.from, ...choice.to].filter((cache) => !canUse(cache));
  if (unused.length > 0) {
    const labels = [...new Set(unused.map(({ label }) => label))].join(", ");
    const why = takesLayers
      ? "cannot read directories of this machine, and keeps all layers itself"
      : "keeps all layers itself";
    log.warn(
      `cache: ${labels} is not used: ${service.address} ${why}; share them in a scope: --cache-from main --cache-to main`,
    );
  }
  if (from.length + to.length === 0) return undefined;
  const { openCaches } = await import("./registry/open-caches.ts");
  const carriesCaches = await supports.cacheArchives();
  return openCaches(
    { from, to },
    { ...options, facts: store.facts, explains: memory.explains, carriesCaches },
  );
}

async function tryRead(name: string, explains: boolean, options: ReadOptions, signal: AbortSignal) {
  try {
    const scope = await readScope(name, options);
    return explains ? { ...scope, index: await readSteps(scope, options) } : scope;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}
