import { resolve } from "node:path";
import type { FoundIndex } from "../../builder/scopes/cache-place.ts";
import { createIndexReader } from "../../builder/scopes/read-index.ts";
import { isCache } from "../../builder/scopes/registry/artifact.ts";
import { createArtifactPlace } from "../../builder/scopes/registry/artifact-place.ts";
import type { CacheStore, CacheTarget } from "../../builder/scopes/registry/cache-store.ts";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { isWrittenAsPath } from "../../paths/local-path.ts";
import { isGithub } from "../../registry/github/scope-address.ts";
import { openBlobStore } from "../../registry/open-blob-store.ts";
import { parseRecord } from "../../service/http/json.ts";
import { parseReference } from "../../service/images/reference.ts";
import { sha256Of } from "../../sha256.ts";
import type { Surroundings } from "../command-line/command.ts";
import { type CacheEntry, parseCaches, type WrittenCacheEntry, wrongCache } from "../entries/cache.ts";
import type { Runtime } from "../process/runtime.ts";
import { githubStores } from "./github-cache.ts";

/** Caches that a build reads or writes: scopes of the service, and stores outside of it. */
interface GivenCaches<Store> {
  scopes: string[];
  stores: Store[];
}

interface OpenOptions extends Pick<Runtime, "workingDirectory" | "environment" | "github" | "isPlugin"> {
  /** The option or variable that names the caches. */
  option: string;
  warn(text: string): void;
}

/** Returns the places of caches that are read. */
export function sourcesOf(entries: readonly CacheEntry[], options: OpenOptions): GivenCaches<CacheStore> {
  return placesOf(entries, (entry) => storesOf(entry, "read", options), options);
}

/** Returns the places of caches that are written. */
export function targetsOf(
  entries: readonly WrittenCacheEntry[],
  options: OpenOptions,
): GivenCaches<CacheTarget> {
  const open = (entry: Extract<WrittenCacheEntry, { writing: unknown }>) => {
    const { compressionLevel, ...writing } = entry.writing;
    if (compressionLevel !== undefined)
      options.warn(
        `${options.option}: compression-level=${compressionLevel} makes no difference: the level is fixed, so that the same layer is always the same bytes`,
      );
    return storesOf(entry, "write", options).map((store) => ({ ...store, ...writing }));
  };
  return placesOf(entries, open, options);
}

type Outside<Entry extends { kind: string }> = Exclude<Entry, { kind: "scope" | "none" | "unsupported" }>;

function placesOf<Entry extends CacheEntry, Store>(
  entries: readonly Entry[],
  open: (entry: Outside<Entry>) => Store[],
  { option }: Pick<OpenOptions, "option">,
): GivenCaches<Store> {
  const scopes: string[] = [];
  const stores: Store[] = [];
  for (const entry of entries) {
    if (entry.kind === "scope") scopes.push(entry.name);
    else if (entry.kind === "unsupported") throw wrongCache(option, reasonAgainst(entry.type));
    else if (entry.kind !== "none") stores.push(...open(entry as Outside<Entry>));
  }
  return { scopes, stores };
}

function storesOf(entry: Outside<CacheEntry>, use: "read" | "write", options: OpenOptions): CacheStore[] {
  switch (entry.kind) {
    case "registry":
      return [registryStore(entry.reference, options)];
    case "local":
      return [directoryStore(resolve(options.workingDirectory, entry.path), entry.tag)];
    case "gha":
      return githubStores(entry.fields, use, options);
  }
}

/** Parses the reference of a cache in a registry. */
function registryStore(reference: string, options: Pick<OpenOptions, "option">): CacheStore {
  const parsed = reference === "" ? undefined : readReference(reference, options);
  if (parsed?.kind !== "registry" || parsed.digest !== undefined)
    throw wrongCache(
      options.option,
      `type=registry needs ref=HOST/NAME:TAG, not ${JSON.stringify(reference)}`,
    );
  const { address, reference: tag } = parsed;
  const [, name = ""] = /^docker:\/\/[^/]+\/(.+)$/.exec(address) ?? [];
  return { label: `${address.slice("docker://".length)}:${tag}`, address, tag, name: `${name}:${tag}` };
}

function readReference(reference: string, { option }: Pick<OpenOptions, "option">) {
  try {
    return parseReference(reference);
  } catch (error) {
    throw wrongCache(option, messageOf(error));
  }
}

/** Returns the cache of a scope in a repository: each scope has a tag of its own there. */
export function storeOfScope(repository: string, scope: string): CacheStore {
  const option = { option: "BOUGH_CACHE_REGISTRY" };
  // A pipeline makes it of its repository's name, which may have capitals: no registry has them.
  const lowered = repository.toLowerCase();
  if (/^[^/]*:\d+$/.test(repository))
    throw usageError(
      `BOUGH_CACHE_REGISTRY: ${JSON.stringify(repository)} is a registry without the name of a repository`,
      `Name a repository of it, such as ${repository}/cache: each branch gets a tag of its own there.`,
    );
  if (/:[^/]*$|@/.test(repository))
    throw usageError(
      `BOUGH_CACHE_REGISTRY: ${JSON.stringify(repository)} has a tag`,
      "Name a repository (HOST/NAME): each branch gets a tag of its own there.",
    );
  return registryStore(`${lowered}:${tagOfScope(scope)}`, option);
}

/** Returns a tag that no other scope has, though tags have no slashes. */
function tagOfScope(scope: string): string {
  if (/^[a-z0-9_][a-z0-9_.-]*$/.test(scope) && !/-[0-9a-f]{8}$/.test(scope)) return scope;
  return `${scope.replace(/[^a-z0-9_.-]/g, "-").replace(/^[.-]/, "_")}-${sha256Of(scope).slice(0, 8)}`;
}

export function targetOf(store: CacheStore, mode: CacheTarget["mode"]): CacheTarget {
  return { ...store, mode, compression: "gzip", keepBytes: undefined, mounts: undefined };
}

/** `path`: absolute. */
function directoryStore(path: string, tag = "latest"): CacheStore {
  const label = tag === "latest" ? path : `${path} (${tag})`;
  // The directory may be elsewhere on the next machine.
  return { label, address: `dir:${path}`, tag, name: `directory:${tag}` };
}

function reasonAgainst(type: string): string {
  const reasons: Readonly<Record<string, string>> = {
    inline: "a cache within the pushed image is not supported: it would lack the steps of other stages",
    s3: "a cache in S3 is not supported",
    azblob: "a cache in Azure's storage is not supported",
  };
  return reasons[type] ?? `type=${type} is not supported`;
}

/** Parses a cache outside the service: `HOST/NAME:TAG`, a path, or as `--cache-from` takes it. `undefined`: the name of a scope. */
export function parseStore(
  text: string,
  runtime: Pick<Runtime, "workingDirectory" | "environment" | "github">,
): CacheStore | undefined {
  const { workingDirectory, environment, github } = runtime;
  const options = { option: "bough cache", workingDirectory, environment, github, warn: () => undefined };
  if (text.includes("=")) return sourcesOf(parseCaches(text, options.option), options).stores[0];
  if (isWrittenAsPath(text)) return directoryStore(resolve(workingDirectory, text));
  return text.includes(":") ? registryStore(text, options) : undefined;
}

export async function readStore(
  store: CacheStore,
  invocation: Pick<Surroundings, "runtime">,
): Promise<FoundIndex> {
  const { clock, signal } = invocation.runtime;
  const place = createArtifactPlace(store, { store: open(store, invocation), clock, signal });
  const found = await createIndexReader(place, { warn: () => undefined }).read();
  for (const { error } of found.failures)
    throw new BoughError(`cannot read the cache ${store.label}: ${error.message}`);
  if (found.parts.length > 0) return found;
  throw noSuchCache(store);
}

/** Removes the cache's manifest; the registry's own collection removes its layers. Refuses anything else that has the tag. */
export async function removeStore(
  store: CacheStore,
  invocation: Pick<Surroundings, "runtime">,
): Promise<void> {
  const { signal } = invocation.runtime;
  if (isGithub(store.address))
    throw new BoughError(`${store.label} can't be removed from here: only GitHub removes its entries`, {
      hint: "`gh cache list --key bough-` lists them, and `gh cache delete` removes them.",
    });
  const blobs = open(store, invocation);
  const manifest = await blobs.getManifest(store.tag, signal);
  if (manifest === undefined) throw noSuchCache(store);
  if (!isCache(parseRecord(manifest.bytes)))
    throw new BoughError(`${store.label} is not a cache of bough: it is not removed`);
  await blobs.removeManifest(store.tag, signal);
}

function open(
  { address }: CacheStore,
  { runtime: { fetch, clock, environment, github } }: Pick<Surroundings, "runtime">,
) {
  return openBlobStore(address, { fetch, clock, environment, github, followsLocation: true });
}

function noSuchCache({ label }: CacheStore): BoughError {
  return new BoughError(`there is no cache ${label}`, {
    hint: "`bough build --cache-to type=registry,ref=HOST/NAME:TAG` or `type=local,dest=DIR` creates one.",
  });
}
