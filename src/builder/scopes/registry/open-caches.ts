import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../clock.ts";
import { messageOf } from "../../../errors.ts";
import { directoryMode } from "../../../image/file-mode.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import { RegistryError } from "../../../registry/registry-error.ts";
import { asRecord } from "../../../service/http/json.ts";
import { cacheKeyOf } from "../../../service/wire/mount.ts";
import type { FactStore } from "../../../store/facts.ts";
import { errorCode } from "../../../system-error.ts";
import type { CarriedCaches } from "../../job.ts";
import { type Entry, formatLayers, type ScopeIndex } from "../scope-index.ts";
import type { FoundScope } from "../shared-cache.ts";
import type { ScopeKeys } from "../signature.ts";
import { isCache, readArtifact, readArtifactSteps, type StoredCache } from "./artifact.ts";
import {
  type CacheStore,
  type CacheTarget,
  directoryIn,
  isDirectory,
  type OpenTarget,
} from "./cache-store.ts";
import { createLayerSender, type LayerSender } from "./send-layers.ts";
import {
  createSharedImages,
  type ImageSource,
  type SharedImages,
  type SharingService,
} from "./shared-images.ts";
import { type Additions, translate } from "./translate.ts";
import { writeCache } from "./write-cache.ts";

/** The caches outside a service that a build reads, in this order, and those that it writes. */
export interface CacheChoice {
  from: readonly CacheStore[];
  to: readonly CacheTarget[];
}

export interface CacheOptions extends ScopeKeys {
  service: SharingService;
  facts: Pick<FactStore, "get" | "set">;
  openStore(address: string): BlobStore;
  openScratch(): Disposable & { path: string };
  /** True if the service can read and fill caches of cache mounts. */
  carriesCaches: boolean;
  /** True if the build explains steps, which needs their inputs. */
  explains: boolean;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** Statuses of a registry that refuses a manifest because it has lost blobs that the cache kept. */
const mayLackBlobs: readonly number[] = [400, 404];

export interface OpenCaches extends Disposable {
  /** True if some cache is written. */
  isWritten: boolean;
  found: FoundScope[];
  images: SharedImages;
  /** `undefined` if the service can't read and fill caches. */
  carried: CarriedCaches | undefined;
  /** Begins to send a layer that was just made, as far as it is certain to be wanted. */
  begin(image: string): void;
  /** Writes what a build has made or used. `results`: its images; empty if it has failed. Rejects only if interrupted. */
  finish(used: ScopeIndex, results: readonly string[], gone: ReadonlySet<string>): Promise<void>;
}

/** Reads the caches. Warns of one that can't be read, and goes on without it. */
export async function openCaches({ from, to }: CacheChoice, options: CacheOptions): Promise<OpenCaches> {
  const { service, signal, log, clock, sign, verify, explains } = options;
  const images = createSharedImages(service, log.warn);
  const stores = new Map<string, BlobStore>();
  const storeOf = (address: string) => {
    return stores.getOrInsertComputed(address, () => options.openStore(address));
  };
  /** Caches by address and tag: one that is read and written is read once. */
  const reads = new Map<string, Promise<StoredCache | undefined>>();
  const read = ({ address, tag, name }: CacheStore) => {
    const key = `${address}:${tag}`;
    const begun = reads.getOrInsertComputed(key, () =>
      readArtifact(storeOf(address), tag, { name, verify, signal }),
    );
    begun.catch(() => undefined);
    return begun;
  };

  const sources: ImageSource[] = [];
  const usedCaches = new Map<string, string>();

  async function find(cache: CacheStore): Promise<FoundScope | undefined> {
    try {
      const stored = await read(cache);
      if (stored === undefined) {
        log.info(`cache: ${cache.label} is empty`);
        return undefined;
      }
      const store = storeOf(cache.address);
      if (explains) await readArtifactSteps(store, stored, signal);
      const { index } = stored.decoded;
      const source = { index, address: cache.address, label: cache.label };
      sources.push(source);
      return {
        name: cache.label,
        index,
        imageOf: (name) => images.declare(name, source),
        chainOf: images.chainOf,
      };
    } catch (error) {
      signal.throwIfAborted();
      log.warn(`cache: ${cache.label} is not used: ${messageOf(error)}`);
      return undefined;
    }
  }

  const targets = to.map((target) => {
    const store = storeOf(target.address);
    const kept = async () => (await read(target).catch(() => undefined))?.kept ?? new Set<string>();
    const nothing = async () => new Set<string>();
    const senderOf = (trusts: boolean) =>
      createLayerSender({ ...options, ...target, store, kept: trusts ? kept : nothing });
    return { ...target, store, sender: senderOf(true), senderOf };
  });

  async function write(
    target: (typeof targets)[number],
    used: ScopeIndex,
    results: readonly string[],
    gone: ReadonlySet<string>,
  ): Promise<void> {
    const writeWith = async (sender: LayerSender, trusts: boolean) => {
      const sends = target.mode === "max" ? "all" : results;
      const layers = await translate(used, { service, images, sender, sends, now: clock.now(), signal });
      const packing = { sender, now: clock.now(), signal, warn: log.warn };
      const additions = await withCaches(layers, usedCaches, target, packing);
      const before = await read(target).catch(() => undefined);
      return writeCache(target, additions, before, {
        ...options,
        sign,
        verify,
        gone,
        trusts,
        warn: log.warn,
      });
    };
    try {
      const written = await writeWith(target.sender, true).catch(async (error: unknown) => {
        if (!(error instanceof RegistryError && mayLackBlobs.includes(error.status ?? 0))) throw error;
        using sender = target.senderOf(false);
        return await writeWith(sender, false);
      });
      if (written === undefined) return;
      if (isDirectory(target.address))
        // The cache is complete without it; the next build tries again.
        await tidyDirectory(directoryIn(target.address), clock.now()).catch(() => undefined);
      log.info(`cache: ${target.label} has ${formatLayers(written.all)}, ${written.added} new`);
    } catch (error) {
      signal.throwIfAborted();
      // The build has succeeded: a full disk or a damaged file costs the cache only.
      log.warn(`cache: nothing is written to ${target.label}: ${messageOf(error)}`);
    }
  }

  if (!options.carriesCaches && to.some(({ mounts }) => mounts !== undefined))
    log.warn(`cache: mounts= has no effect: ${service.address} keeps the contents of cache mounts itself`);
  const found = await Promise.all(from.map(find));
  return {
    isWritten: to.length > 0,
    found: found.filter((scope) => scope !== undefined),
    images,
    carried: options.carriesCaches ? createCarriedCaches(sources, usedCaches) : undefined,
    begin(image) {
      for (const { mode, sender } of targets) if (mode === "max") beginSending(image, sender);
    },
    finish: async (used, results, gone) => {
      await Promise.all(targets.map((target) => write(target, used, results, gone)));
    },
    [Symbol.dispose]() {
      for (const { sender } of targets) sender[Symbol.dispose]();
    },
  };
}

/** The error comes when the cache is written, if it is still there. */
function beginSending(image: string, sender: LayerSender): void {
  sender.send(image).catch(() => undefined);
}

/** Blobs of other writers, which no manifest names yet, are younger. */
const minAgeMilliseconds = 60 * 60 * 1000;

/**
 * Removes the blobs of an OCI layout that none of its caches names, so that a directory does not grow with each write. Removes
 * nothing from a layout that has anything else, or something that can't be read: others may name blobs in another way.
 */
export async function tidyDirectory(directory: string, now: number): Promise<void> {
  const blobs = join(directory, "blobs/sha256");
  const manifests = listIn(await readJson(join(directory, "index.json")), "manifests");
  if (manifests === undefined) return;
  const named = new Set<string>();
  for (const digest of manifests.map(nameIn)) {
    const manifest = digest === undefined ? undefined : await readJson(join(blobs, digest));
    const layers = listIn(manifest, "layers");
    if (digest === undefined || layers === undefined || !isCache(manifest)) return;
    for (const name of [digest, nameIn(asRecord(manifest)?.config), ...layers.map(nameIn)]) {
      if (name === undefined) return;
      named.add(name);
    }
  }
  for (const name of await readdir(blobs)) {
    if (named.has(name)) continue;
    const place = join(blobs, name);
    const found = await stat(place).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < now - minAgeMilliseconds) await rm(place, { force: true });
  }
}

/** No manifest or list is larger. */
const maxBytes = 8 * 1024 * 1024;

async function readJson(path: string): Promise<unknown> {
  try {
    if ((await stat(path)).size > maxBytes) return undefined;
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? ""))
      return undefined;
    throw error;
  }
}

function listIn(json: unknown, field: "manifests" | "layers"): unknown[] | undefined {
  const list = asRecord(json)?.[field];
  return Array.isArray(list) ? list : undefined;
}

/** Returns the name of the file of a blob. */
function nameIn(descriptor: unknown): string | undefined {
  const digest = asRecord(descriptor)?.digest;
  return typeof digest === "string" ? /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] : undefined;
}

/** Ids of the cache mounts that commands of the build have used, by key. */
type UsedCaches = ReadonlyMap<string, string>;

/** Finds the newest contents of each cache mount, and notes in `used` which are used. */
function createCarriedCaches(sources: readonly ImageSource[], used: Map<string, string>): CarriedCaches {
  const newest = new Map<string, { entry: Entry<"mounts">; source: string }>();
  for (const { index, address } of sources)
    for (const [key, entry] of index.mounts)
      if (entry.usedAt > (newest.get(key)?.entry.usedAt ?? -1)) newest.set(key, { entry, source: address });
  return {
    use({ id, uid = 0, gid = 0, mode }) {
      const bits = mode === undefined ? directoryMode : Number.parseInt(mode, 8);
      const key = cacheKeyOf({ id, uid, gid, mode: bits });
      used.set(key, id);
      const found = newest.get(key);
      return found && { source: found.source, digest: found.entry.digest, size: found.entry.size };
    },
  };
}

/** Sends the caches that a build has used, as far as the target wants them. Warns of each that can't be sent. */
async function withCaches(
  additions: Additions,
  used: UsedCaches,
  { mounts, label }: Pick<OpenTarget, "mounts" | "label">,
  {
    sender,
    now,
    signal,
    warn,
  }: { sender: LayerSender; now: number; signal: AbortSignal; warn(text: string): void },
): Promise<Additions> {
  if (mounts === undefined) return additions;
  const sent = new Set(additions.sent);
  for (const [key, id] of used) {
    if (mounts.ids?.includes(id) === false) continue;
    try {
      const { mediaType, digest, size } = await sender.sendCache(key, mounts.maxBytes);
      additions.index.mounts.set(key, { id, mediaType, digest, size, usedAt: now });
      sent.add(digest);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Error)) throw error;
      warn(`cache: the cache mount ${JSON.stringify(id)} is not written to ${label}: ${messageOf(error)}`);
    }
  }
  return { ...additions, sent };
}
