import { resolve } from "node:path";
import { type DecodedIndex, UnusableIndexError } from "../../builder/scopes/index-file.ts";
import { isCache, parseManifest, readArtifact } from "../../builder/scopes/registry/artifact.ts";
import type { CacheStore } from "../../builder/scopes/registry/cache-store.ts";
import { BoughError } from "../../errors.ts";
import { openBlobStore } from "../../registry/open-blob-store.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Runtime } from "../process/runtime.ts";
import { directoryStore, parseSources, registryStore } from "./cache-stores.ts";

/** Parses a cache outside the service: `HOST/NAME:TAG`, a path, or as `--cache-from` takes it. `undefined`: the name of a scope. */
export function parseStore(
  text: string,
  { workingDirectory }: Pick<Runtime, "workingDirectory">,
): CacheStore | undefined {
  const options = { option: "bough cache", workingDirectory, warn: () => undefined };
  if (text.includes("=")) return parseSources([text], options).stores[0];
  if (/^\.{0,2}\//.test(text)) return directoryStore(resolve(workingDirectory, text));
  return text.includes(":") ? registryStore(text, options) : undefined;
}

export async function readStore(
  store: CacheStore,
  invocation: Pick<Invocation, "runtime">,
): Promise<DecodedIndex> {
  const { signal } = invocation.runtime;
  try {
    const found = await readArtifact(open(store, invocation), store.tag, {
      name: store.name,
      verify: undefined,
      signal,
    });
    if (found !== undefined) return found.decoded;
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
    throw new BoughError(`cannot read the cache ${store.label}: ${error.message}`);
  }
  throw noSuchCache(store);
}

/** Removes the cache's manifest; the registry's own collection removes its layers. Refuses anything else that has the tag. */
export async function removeStore(store: CacheStore, invocation: Pick<Invocation, "runtime">): Promise<void> {
  const { signal } = invocation.runtime;
  const blobs = open(store, invocation);
  const manifest = await blobs.getManifest(store.tag, signal);
  if (manifest === undefined) throw noSuchCache(store);
  if (!isCache(parseManifest(manifest.bytes)))
    throw new BoughError(`${store.label} is no cache of bough: it is not removed`);
  await blobs.removeManifest(store.tag, signal);
}

function open(
  { address }: CacheStore,
  { runtime: { fetch, clock, environment } }: Pick<Invocation, "runtime">,
) {
  return openBlobStore(address, { fetch, clock, environment, followsLocation: true });
}

function noSuchCache({ label }: CacheStore): BoughError {
  return new BoughError(`there is no cache ${label}`, {
    hint: "`bough build --cache-to type=registry,ref=HOST/NAME:TAG` or `type=local,dest=DIR` creates one.",
  });
}
