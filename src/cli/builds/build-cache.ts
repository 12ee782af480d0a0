import { basename, join, relative } from "node:path";
import { createLayerCache, type LayerCache } from "../../builder/cache/layer-cache.ts";
import { createStepMemory, type StepMemory } from "../../builder/cache/step-memory.ts";
import type { CarriedCaches, RemoteBases } from "../../builder/job.ts";
import type { SharedCaches } from "../../builder/scopes/shared-caches.ts";
import { pathWithin } from "../../context/file-system/display-path.ts";
import type { Store } from "../../store/store.ts";
import type { Log } from "../../terminal/log.ts";
import type { Connection } from "../service/connection.ts";
import type { BuildInputs } from "./inputs.ts";
import type { ScopeOptions } from "./options/scope-options.ts";
import type { BuildInvocation } from "./request.ts";

/** The results of earlier builds: those of this machine, and those of other machines in scopes. */
export interface BuildCache {
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  remoteBases?: RemoteBases | undefined;
  carriedCaches?: CarriedCaches | undefined;
  /**
   * Hands the layers that the build made or used to the writers of the shared caches. `results`: the build's image, or that of each
   * platform; empty if it has failed.
   */
  add(results: readonly string[]): Promise<void>;
}

/** The shared caches of all builds of a command, whose code is loaded with the first of them. */
export interface CommandCaches extends AsyncDisposable {
  open(): Promise<SharedCaches>;
  /** Writes what the builds have added. Rejects only if interrupted. */
  write(): Promise<void>;
}

export function createCommandCaches(log: Log): CommandCaches {
  let opened: Promise<SharedCaches> | undefined;
  return {
    open() {
      opened ??= import("../../builder/scopes/shared-caches.ts").then(({ createSharedCaches }) =>
        createSharedCaches(log),
      );
      return opened;
    },
    async write() {
      await (await opened)?.write();
    },
    async [Symbol.asyncDispose]() {
      (await opened)?.[Symbol.dispose]();
    },
  };
}

/** Reads `--cache-from` and related options. Returns `undefined`, and loads no code for them, if none is given. */
export async function readSharing(
  invocation: BuildInvocation,
  { context, fetched }: BuildInputs,
): Promise<ScopeOptions | undefined> {
  const { options, runtime } = invocation;
  const { BOUGH_CACHE_TO = "", BOUGH_CACHE_FROM = "" } = runtime.environment;
  const { "cache-from": cacheFrom = [], "cache-to": cacheTo = [] } = options;
  const isGiven =
    cacheFrom.length > 0 ||
    cacheTo.length > 0 ||
    (["cache", "cache-sign", "cache-verify"] as const).some((name) => options[name] !== undefined);
  if (!isGiven && BOUGH_CACHE_TO === "" && BOUGH_CACHE_FROM === "") return undefined;
  const { readScopeOptions } = await import("./options/scope-options.ts");
  return readScopeOptions(invocation, fetched === undefined ? context.realPath : undefined);
}

interface CacheChoice {
  sharing: ScopeOptions | undefined;
  shared: CommandCaches;
  session: string;
  cacheRealm: string | undefined;
  /** The sessions of builds that run at the same time. */
  otherSessions: ReadonlySet<string> | undefined;
  log: Log;
}

export async function openBuildCache(
  { store, serviceFor }: Connection,
  { sharing, shared, session, cacheRealm, otherSessions, log }: CacheChoice,
  { context, location, dockerfile: { absolutePath } }: BuildInputs,
  { options, runtime }: BuildInvocation,
): Promise<BuildCache> {
  const { clock, signal, environment } = runtime;
  const own = {
    store,
    layers: createLayerCache(store, session, otherSessions),
    memory: createStepMemory(store.steps, {
      session,
      // `location` is the same each time a context is fetched from one address.
      dockerfile: join(location, relative(context.absolutePath, absolutePath)),
      explains: options.explain === true,
    }),
  };
  if (sharing === undefined) return { ...own, add: async () => undefined };
  const { keys, reason, ...choice } = sharing;
  if (reason !== undefined) log.info(`cache: ${describeChoice(choice)} (${reason})`);
  const { openScopes } = await import("../../builder/scopes/open-scopes.ts");
  const { openBlobSource, openBlobStore } = await import("../../registry/open-blob-store.ts");
  const { openScratch } = await import("../process/scratch.ts");
  const dependencies = { fetch: runtime.fetch, clock, environment, github: runtime.github };
  // A mirror may have an older cache than the one that is written.
  const openStore = (address: string) => openBlobStore(address, { ...dependencies, followsLocation: true });
  const { caches = { from: [], to: [] } } = choice;
  // A failed stage aborts the build's own requests, but its caches are still written.
  const service = serviceFor(signal);
  const scopes = await openScopes(
    options["no-cache"] === true ? { ...choice, from: [], caches: { ...caches, from: [] } } : choice,
    {
      ...{ ...own, ...keys, session, cacheRealm, clock, signal, log, shared: await shared.open() },
      // The same on every machine, wherever its checkout is.
      dockerfile: pathWithin(context.absolutePath, absolutePath) ?? basename(absolutePath),
      ...{ service, openStore, openScratch: () => openScratch("cache", environment) },
    },
  );
  const { images } = scopes;
  if (images === undefined) return scopes;
  const { createRemoteBases } = await import("../../builder/bases/remote-base.ts");
  const remoteBases = createRemoteBases({
    service,
    openSource: (address) => openBlobSource(address, dependencies),
    onDeclared: images.recordBase,
    signal,
  });
  return { ...scopes, remoteBases };
}

function describeChoice({ from, to, caches }: Pick<ScopeOptions, "from" | "to" | "caches">): string {
  const read = [...from, ...(caches?.from ?? []).map(({ label }) => label)];
  const written = [...(to === undefined ? [] : [to]), ...(caches?.to ?? []).map(({ label }) => label)];
  const reads = read.length === 0 ? "reads no scope" : `reads ${read.join(", ")}`;
  return `${reads}, writes ${written.length === 0 ? "none" : written.join(", ")}`;
}
